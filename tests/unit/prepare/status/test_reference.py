"""docs/refusals.md has every code that a claim can be refused with."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoon.prepare
from dragoon import errors
from dragoon.api import names
from dragoon.errors import DragoonError
from dragoon.gpu import faults
from dragoon.prepare.audit.judging import Cause
from dragoon.prepare.status import reference
from dragoon.prepare.status.outcome import Refused

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "refusals.md"
CODE = ROOT / "driver" / "dragoon"
FAKES = ("effects_memory", "mig_faults", "limits_memory", "mig_memory", "condition_memory", "cards")
NEVER_TOLD = {
    # The claim cannot be read, or has no devices to say anything of.
    errors.ApiError,
    errors.ApiUnavailableError,
    errors.ApiNotFoundError,
    errors.ApiConflictError,
    errors.ApiGoneError,
    errors.ApiInvalidError,
    errors.ApiForbiddenError,
    errors.ClaimGoneError,
    errors.ClaimNotAllocatedError,
    # Not raised by a prepare: an unprepare, the start of the process, questions.
    errors.ClaimInUseError,
    errors.ConfigError,
    errors.KubeletError,
    errors.UnsupportedError,
    # Only its kinds are raised.
    faults.BlockedError,
}


def every_kind(kind: type[DragoonError] = DragoonError) -> Iterator[type[DragoonError]]:
    for one in kind.__subclasses__():
        yield one
        yield from every_kind(one)


def test_every_error_that_prepare_can_meet_has_its_entry() -> None:
    for module in pkgutil.walk_packages(dragoon.prepare.__path__, "dragoon.prepare."):
        importlib.import_module(module.name)
    places = ("dragoon.errors", "dragoon.gpu.", "dragoon.prepare.")
    met = {one for one in every_kind() if one.__module__.startswith(places)}
    assert met - NEVER_TOLD == set(reference.REFUSALS)


def test_codes_are_told_apart_and_are_reasons_that_a_condition_may_have() -> None:
    codes = [kind.code for kind in reference.REFUSALS]
    assert len(set(codes)) == len(codes)
    assert all(code.isascii() and code.isalnum() and code[0].isupper() for code in codes)


@pytest.mark.parametrize("kind", reference.REFUSALS, ids=lambda kind: kind.code)
def test_every_entry_is_told_in_a_claims_status(kind: type[DragoonError]) -> None:
    told = Refused.by(kind("what happened"))
    assert told is not None
    assert told.code == kind.code


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text() == reference.reference(), (
        "run: dragoon reference refusals > docs/refusals.md"
    )


def test_the_page_names_what_the_code_names() -> None:
    page = PAGE.read_text()
    assert names.TAINT_BLOCKED in page
    assert names.TAINT_LOST in page
    audit = PAGE.with_name("audit.md").read_text()
    assert all(cause in audit for cause in Cause)


def made() -> Iterator[tuple[str, str, ast.Call]]:
    """Where a refusal is made: file and line, the error's name, and the call."""
    names_ = {kind.__name__ for kind in reference.REFUSALS}
    files = [
        *(CODE / "prepare").rglob("*.py"),
        *(CODE / "gpu" / "nvml").rglob("*.py"),
        CODE / "api" / "opaque_config.py",
    ]
    for file in (one for one in files if one.stem not in FAKES):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names_:
                name = ast.unparse(node.func).rpartition(".")[2]
                yield f"{file.relative_to(ROOT)}:{node.lineno}", name, node


def test_every_refusal_says_what_to_do_or_what_is_allowed() -> None:
    by_name = {kind.__name__: kind for kind in reference.REFUSALS}
    found = list(made())
    assert len(found) > 80
    silent = [
        where
        for where, name, call in found
        if not by_name[name].default_hint
        and not any(keyword.arg == "hint" for keyword in call.keywords)
        and "allowed" not in ast.unparse(call)
    ]
    assert silent == []
