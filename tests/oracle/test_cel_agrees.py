"""CEL against the compiler and evaluator that kube-scheduler uses."""

from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.oracle.expressions import devices, expressions
from tests.oracle.go_oracle import Oracle
from tests.unit.cel.test_expressions import DEVICE, DRIVER, outcome, table


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


_SCRAPS = (*"abx019.,:?()[]{}+-*/%!<>=&|'\"\\ \n\trbun", "true", "null", "in", "device")


@settings(settings.get_profile("oracle"))
@given(text=st.lists(st.sampled_from(_SCRAPS), max_size=12).map("".join))
def test_random_scraps_agree(oracle: Oracle, text: str) -> None:
    ours = outcome(text, DRIVER, DEVICE)
    assert ours in {"unsupported", answered(oracle, text, DEVICE)}, text
