"""Quantities and versions against k8s.io/apimachinery and Kubernetes' CEL library."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon import quantity, semver
from dragoon.errors import InvalidInputError
from tests.oracle.go_oracle import Oracle

_DIGITS = st.text("0123456789", max_size=22)
_SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@st.composite
def quantities(draw: st.DrawFn) -> str:
    """Mostly right texts, of all sizes and notations, and some that are nearly right."""
    if not draw(st.integers(0, 9)):
        return draw(st.text("+-.0123456789eEKMGTPimnuk ", max_size=8))
    number = draw(_DIGITS)
    if draw(st.booleans()):
        number += "." + draw(_DIGITS)
    suffix = draw(st.sampled_from(_SUFFIXES))
    if not draw(st.integers(0, 4)):
        suffix = draw(st.sampled_from("eE")) + str(draw(st.integers(-30, 30)))
    return draw(st.sampled_from(("", "", "-", "+"))) + number + suffix


def parsed(text: str) -> quantity.Quantity | None:
    try:
        return quantity.parse(text)
    except InvalidInputError:
        return None


@settings(settings.get_profile("oracle"))
@given(left=quantities(), right=quantities())
def test_quantities_agree(oracle: Oracle, left: str, right: str) -> None:
    answer = oracle.ask("quantity", left=left, right=right)
    one, other = parsed(left), parsed(right)
    if one is None or other is None:
        assert "error" in answer
        return
    assert "error" not in answer
    assert one.compare(other) == answer["compare"]
    assert one.as_int64() == answer["integer"]
    assert (one + other).as_int64() == answer["sumInteger"]
    assert one.as_approximate_float() == float(answer["float"])
    for ours, theirs in ((one, "canonical"), (one + other, "sum"), (one - other, "rest")):
        if is_written_fully(ours):
            assert str(ours) == answer[theirs]


def is_written_fully(value: quantity.Quantity) -> bool:
    """Whether Go has a suffix for it: beyond E and Ei it drops the suffix, and the value."""
    limit = quantity.parse("1000E") if value.format is not quantity.Format.BINARY else _KIBI_EXA
    return -limit < value < limit


_KIBI_EXA = quantity.Quantity(2**70)


@st.composite
def versions(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.sampled_from(("0", "1", "2", "10", "01", "00", "", "x")), max_size=4))
    text = draw(st.sampled_from(("", "", "v"))) + ".".join(parts)
    words = st.text("0123456789ab-.", max_size=6)
    if draw(st.booleans()):
        text += "-" + draw(words)
    if not draw(st.integers(0, 3)):
        text += "+" + draw(words)
    return text


@pytest.mark.parametrize("lenient", [False, True])
@settings(settings.get_profile("oracle"))
@given(left=versions(), right=versions())
def test_versions_agree(oracle: Oracle, lenient: bool, left: str, right: str) -> None:
    read = semver.parse_lenient if lenient else semver.parse
    arguments = [f"{json.dumps(text)}, {str(lenient).lower()}" for text in (left, right)]
    try:
        expected: Any = read(left).compare(read(right))
    except InvalidInputError:
        expected = None
    valid = " && ".join(f"isSemver({argument})" for argument in arguments)
    assert matches(oracle, valid) is (expected is not None)
    if expected is not None:
        one, other = (f"semver({argument})" for argument in arguments)
        assert matches(oracle, f"{one}.compareTo({other}) == {expected}")


def matches(oracle: Oracle, expression: str) -> bool:
    answer = oracle.ask("cel", expression=expression, driver="d", device={"name": "x"})
    assert "compile" not in answer, answer
    assert "error" not in answer, answer
    return bool(answer["matches"])
