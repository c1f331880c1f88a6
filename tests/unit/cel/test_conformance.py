"""Selectors as kube-scheduler evaluates them: result, cost, and the estimate at creation."""

import pytest

from dragoon.cel import COST_LIMIT, CostLimitError, compile_selector, device_view
from tests.unit.cel.conformance import Answer, Case, answer, cases

_REFUSED = [case for case in cases() if case.expression.startswith("type(")]


@pytest.mark.parametrize(
    "case", [case for case in cases() if case not in _REFUSED], ids=lambda case: case.name
)
def test_selector_gives_and_costs_what_it_does_in_kubernetes(case: Case) -> None:
    found = answer(case.expression, case.driver, case.device)
    if (case.answer.cost or 0) > COST_LIMIT:
        assert (found.cost or 0) > COST_LIMIT
        found = Answer(found.result, case.answer.cost, found.estimate)
    assert found == case.answer


@pytest.mark.parametrize("case", _REFUSED, ids=lambda case: case.name)
def test_what_is_refused_here_cannot_be_in_a_new_object(case: Case) -> None:
    assert answer(case.expression, case.driver, case.device) == Answer("unsupported")
    assert (case.answer.estimate or 0) > COST_LIMIT


def test_the_cost_limit_is_met_exactly() -> None:
    """lists.range(n) costs n + 11, size() and == one each."""
    device = device_view("d", {})
    most = COST_LIMIT - 13
    assert compile_selector(f"lists.range({most}).size() == {most}").evaluate(device)
    program = compile_selector(f"lists.range({most + 1}).size() == {most + 1}")
    assert program.cost(device) == COST_LIMIT + 1
    with pytest.raises(CostLimitError):
        program.evaluate(device)
