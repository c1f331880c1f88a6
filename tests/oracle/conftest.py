"""The oracle as a fixture, and fresh random seeds for every run."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.oracle.go_oracle import Oracle, build, missing_go

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
    reason = missing_go()
    if reason and os.environ.get("CI"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    running = Oracle(build())
    yield running
    running.close()
