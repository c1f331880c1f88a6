"""The cases of conformance.yaml, and what Dragoon makes of one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dragoon.cel import (
    CompileError,
    EvaluationError,
    UnsupportedExpressionError,
    compile_selector,
    device_view,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """result: `true`, `false`, `error`, `compile` or `unsupported`; without costs for the latter two."""

    result: str
    cost: int | None = None
    estimate: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One selector on one device."""

    name: str
    driver: str
    device: dict[str, Any]
    expression: str
    answer: Answer


def cases() -> list[Case]:
    """All cases of the file."""
    raw = yaml.safe_load((Path(__file__).parent / "conformance.yaml").read_text())
    return [_case(raw["devices"][one["device"]], one) for one in raw["cases"]]


def _case(device: dict[str, Any], raw: dict[str, Any]) -> Case:
    answer = Answer(raw["result"], raw.get("cost"), raw.get("estimate"))
    return Case(
        raw["name"], device["driver"], {"name": "x", **device["device"]}, raw["expression"], answer
    )


def answer(expression: str, driver: str, device: dict[str, Any]) -> Answer:
    """What Dragoon makes of a selector."""
    try:
        program = compile_selector(expression)
    except UnsupportedExpressionError:
        return Answer("unsupported")
    except CompileError:
        return Answer("compile")
    view = device_view(driver, device)
    try:
        result = str(program.evaluate(view)).lower()
    except EvaluationError:
        result = "error"
    return Answer(result, program.cost(view), program.estimated_cost)
