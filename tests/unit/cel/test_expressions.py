"""Every expression of the tables beside this file gives what Kubernetes gives."""

from pathlib import Path
from typing import Any

import pytest

from dragoon.cel import (
    CompileError,
    EvaluationError,
    UnsupportedExpressionError,
    compile_selector,
    device_view,
)

FOLDER = Path(__file__).parent
TABLES = ("expressions.txt", "libraries.txt")
DRIVER = "d"
DEVICE: dict[str, Any] = {
    "name": "x",
    "attributes": {
        "oneBool": {"bool": True},
        "idx": {"int": 3},
        "s": {"string": "x"},
        "ver": {"version": "1.2.3"},
        "other.dom/z": {"string": "zz"},
    },
    "capacity": {"memory": {"value": "141Gi"}},
}


def table() -> list[tuple[str, str]]:
    """(outcome, expression) of every line of all tables."""
    lines = [line for name in TABLES for line in (FOLDER / name).read_text().splitlines()]
    return [(line[:12].strip(), line[12:]) for line in lines if not line.startswith("#")]


def outcome(expression: str, driver: str, device: dict[str, Any]) -> str:
    """What Dragoon makes of an expression, in the words of the table."""
    try:
        program = compile_selector(expression)
    except UnsupportedExpressionError:
        return "unsupported"
    except CompileError:
        return "compile"
    try:
        return str(program.evaluate(device_view(driver, device))).lower()
    except EvaluationError:
        return "error"


@pytest.mark.parametrize(("expected", "expression"), table(), ids=lambda text: text[:60])
def test_expression_gives_what_kubernetes_gives(expected: str, expression: str) -> None:
    assert outcome(expression, DRIVER, DEVICE) == expected


@pytest.mark.parametrize(
    "expression", [e for kind, e in table() if kind not in {"compile", "unsupported"}]
)
def test_explain_agrees_with_evaluate(expression: str) -> None:
    trace = compile_selector(expression).explain(device_view(DRIVER, DEVICE))
    told = "error" if trace.failure is not None else str(trace.result).lower()
    assert told == outcome(expression, DRIVER, DEVICE)
    assert bool(trace.findings) == (trace.result is not True)
