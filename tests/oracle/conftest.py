"""The oracle as a fixture, and fresh random seeds for every run."""

import os
from collections.abc import Iterator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.oracle.go_oracle import (
    GoProgram,
    Oracle,
    Validators,
    build,
    build_validators,
    missing_go,
)

settings.register_profile(
    "oracle",
    max_examples=int(os.environ.get("DRAGOON_ORACLE_EXAMPLES", "300")),
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    _need_go()
    yield from _running(Oracle(build()))


@pytest.fixture(scope="session")
def validators() -> Iterator[Validators]:
    _need_go()
    yield from _running(Validators(build_validators()))


def _need_go() -> None:
    reason = missing_go()
    if reason and os.environ.get("CI"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


Program = TypeVar("Program", bound=GoProgram)


def _running(program: Program) -> Iterator[Program]:
    yield program
    program.close()
