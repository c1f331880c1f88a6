"""CEL against the compiler and evaluator that kube-scheduler uses."""

import re
from dataclasses import replace
from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from dragoon.cel import COST_LIMIT
from tests.oracle.expressions import devices, expressions
from tests.oracle.go_oracle import Oracle
from tests.unit.cel.conformance import Answer, answer, cases
from tests.unit.cel.test_expressions import DEVICE, DRIVER, outcome, table

_PANIC = re.compile("interface conversion|unhashable type")
_TRIES = 20
"""How often Go is asked where it may walk over a map in another order, which changes the cost."""


def costs(oracle: Oracle, expression: str, driver: str, device: dict[str, Any]) -> Answer:
    """Result, cost and estimate of Kubernetes. Rejects the examples where cel-go 0.29.2 panics."""
    said = oracle.ask("cel", expression=expression, driver=driver, device=device)
    if "panic" in said or _PANIC.search(said.get("error", "")):
        reject()
    if "compile" in said:
        return Answer("compile")
    result = "error" if "error" in said else str(said["matches"]).lower()
    return Answer(result, min(said["cost"], COST_LIMIT + 1), said["maxCost"])


def capped(found: Answer) -> Answer:
    """Beyond the limit cel-go stops to count where it notices."""
    return found if found.cost is None else replace(found, cost=min(found.cost, COST_LIMIT + 1))


def answered(oracle: Oracle, expression: str, device: dict[str, Any]) -> str:
    """What Kubernetes makes of an expression, in the words of expressions.txt.

    Rejects the examples where cel-go 0.29.2 panics: `[?dyn(1)]`, `dyn(1).distinct()`.
    """
    answer = oracle.ask("cel", expression=expression, driver=DRIVER, device=device)
    if "panic" in answer or "interface conversion" in answer.get("error", ""):
        reject()
    if "compile" in answer:
        return "compile"
    return "error" if "error" in answer else str(answer["matches"]).lower()


def test_kubernetes_agrees_with_every_line_of_the_table(oracle: Oracle) -> None:
    wrong = [
        (expression, expected, said)
        for expected, expression in table()
        if (said := answered(oracle, expression, DEVICE)) != expected and expected != "unsupported"
    ]
    assert wrong == []


@settings(settings.get_profile("oracle"))
@given(expression=expressions(), device=devices())
def test_random_expressions_agree(oracle: Oracle, expression: str, device: dict[str, Any]) -> None:
    ours = outcome(expression, DRIVER, device)
    assert ours in {"unsupported", answered(oracle, expression, device)}, expression


@settings(settings.get_profile("oracle"))
@given(expression=expressions(), device=devices())
def test_random_costs_agree(oracle: Oracle, expression: str, device: dict[str, Any]) -> None:
    ours = capped(answer(expression, DRIVER, device))
    if ours.result == "unsupported":
        reject()
    theirs = costs(oracle, expression, DRIVER, device)
    for _ in range(_TRIES):
        if theirs == ours:
            break
        theirs = costs(oracle, expression, DRIVER, device)
    assert ours == theirs, expression


def test_kubernetes_agrees_with_every_conformance_case(oracle: Oracle) -> None:
    wrong = [
        (case.name, said)
        for case in cases()
        if (said := costs(oracle, case.expression, case.driver, case.device)) != capped(case.answer)
    ]
    assert wrong == []


_SCRAPS = (*"abx019.,:?()[]{}+-*/%!<>=&|'\"\\ \n\trbun", "true", "null", "in", "device")


@settings(settings.get_profile("oracle"))
@given(text=st.lists(st.sampled_from(_SCRAPS), max_size=12).map("".join))
def test_random_scraps_agree(oracle: Oracle, text: str) -> None:
    ours = outcome(text, DRIVER, DEVICE)
    assert ours in {"unsupported", answered(oracle, text, DEVICE)}, text
