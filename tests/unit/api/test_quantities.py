"""Raw quantities as numbers."""

from typing import Any

import pytest

from dragoon.api.quantities import quantity_of, whole_of


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("80Gi", 80 * 2**30),
        ("100000000Mi", 10**8 * 2**20),
        (7, 7),
        ("1e3", 1000),
        ("0", 0),
        ("0e30", 0),
        ("1000m", 1),
        ("-5", -5),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_whole_quantities_are_exact_numbers(value: Any, number: int) -> None:
    assert whole_of(value) == number


@pytest.mark.parametrize(
    "value", ["1500m", "9223372036854775808", "1e300", "x", "", None, True, 1.5]
)
def test_what_is_no_64_bit_integer_is_none(value: Any) -> None:
    assert whole_of(value) is None


@pytest.mark.parametrize("value", ["1 Gi", None, True, 1.5, {}])
def test_what_is_no_quantity_is_none(value: Any) -> None:
    assert quantity_of(value) is None
