"""No expression runs long, eats memory, or overruns Python's stack."""

import pytest

from dragoon.cel import (
    CompileError,
    CostLimitError,
    EvaluationError,
    SizeLimitError,
    UnsupportedExpressionError,
    compile_selector,
    device_view,
)

DEVICE = device_view("d", {})


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, true)))",
        "lists.range(2000).map(x, lists.range(2000)).size() > 0",
        "lists.range(1000).all(x, !lists.range(1000).exists(y, y > 10000)) || true",
    ],
)
def test_the_cost_limit_ends_an_evaluation_and_nothing_absorbs_it(expression: str) -> None:
    with pytest.raises(CostLimitError):
        compile_selector(expression).evaluate(DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000000000).size() > 0",
        f"'{'x' * 5000}'.replace('', '{'y' * 4000}').size() > 0",
        "lists.range(5000).distinct().size() > 0",
        "sets.contains(lists.range(5000), lists.range(5000))",
    ],
)
def test_a_function_refuses_a_result_that_would_eat_memory(expression: str) -> None:
    with pytest.raises(EvaluationError):
        compile_selector(expression).evaluate(DEVICE)


@pytest.mark.parametrize("start", ["'xxxxxxxxxxxxxxxx'", "[1]"])
def test_a_value_that_doubles_and_doubles_is_refused_and_nothing_absorbs_that(start: str) -> None:
    steps = "".join(f"cel.bind(a{i + 1}, a{i} + a{i}, " for i in range(30))
    expression = f"cel.bind(a0, {start}, {steps}a30.size() > 0{')' * 31} || true"
    with pytest.raises(SizeLimitError):
        compile_selector(expression).evaluate(DEVICE)


def test_an_expression_over_10_kib_is_refused_as_by_the_api_server() -> None:
    with pytest.raises(CompileError, match="allowed are 10240"):
        compile_selector("true && " * 1300 + "true")


def test_a_long_flat_expression_of_10_kib_works() -> None:
    assert compile_selector(" && ".join(["true"] * 1200)).evaluate(DEVICE)


@pytest.mark.parametrize(
    "expression",
    ["(" * 60 + "true" + ")" * 60, "1" + " + 1" * 200 + " > 0", "!(" * 55 + "true" + ")" * 55],
)
def test_what_is_nested_too_deeply_is_refused_with_a_reason(expression: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match=r"nested|levels deep"):
        compile_selector(expression)


def test_a_hostile_regular_expression_ends_in_time() -> None:
    program = compile_selector(f"'{'a' * 5000}'.matches('(a|a)*(a|a)*(a|a)*b')")
    assert program.evaluate(DEVICE) is False


@pytest.mark.parametrize("expression", [r"'a'.matches(r'(?=a)')", r"'a'.matches(r'(a)\1')"])
def test_what_re2_refuses_is_refused(expression: str) -> None:
    with pytest.raises(CompileError, match="invalid regular expression"):
        compile_selector(expression)


@pytest.mark.parametrize("number", ["1" * 5000, "0x" + "1" * 5000, "1" * 5000 + "u"])
def test_a_number_of_thousands_of_digits_is_refused(number: str) -> None:
    with pytest.raises(CompileError, match="does not fit"):
        compile_selector(f"{number} == {number}")


@pytest.mark.parametrize(
    "expression",
    [
        f"duration('{'1' * 5000}s') == duration('0s')",
        f"'%.{'1' * 5000}f'.format([1.0]) == ''",
    ],
)
def test_thousands_of_digits_in_a_text_are_refused(expression: str) -> None:
    with pytest.raises(CompileError):
        compile_selector(expression)
