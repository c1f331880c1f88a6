"""Quantities: exact, canonical, and accepting what Kubernetes accepts."""

import pytest

from dragoon.errors import InvalidInputError
from dragoon.quantity import ZERO, Format, Quantity, parse


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("-1", "-1"),
        ("007", "7"),
        ("1.5", "1500m"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("0.1", "100m"),
        ("1000", "1k"),
        ("1100", "1100"),
        ("12e6", "12e6"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1E", "1E"),
        ("1000E", "1000E"),
        ("40Gi", "40Gi"),
        ("1.5Gi", "1536Mi"),
        ("1024Ki", "1Mi"),
        ("144384Mi", "141Gi"),
        ("0.5Ki", "512"),
        ("1Ki", "1Ki"),
        ("0.1n", "1n"),
        ("1.0000000001", "1000000001n"),
        ("-1.5Gi", "-1536Mi"),
        # Capped, as every binary quantity.
        ("16Ei", "9223372036854775807"),
        # A number is not needed.
        ("Ki", "0"),
        ("+", "0"),
        (".", "0"),
        (".5", "500m"),
        ("5.", "5"),
    ],
)
def test_text_has_this_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1 Gi",
        "1gi",
        "1KI",
        "abc",
        "1.2.3",
        "1e",
        "1e+",
        "1eK",
        "--1",
        "1ee3",
        "1_0",
        "\u0661",
        "0x10",
        "1Kim",
        "1e99999999999999999999",
        "9" * 3000,
    ],
)
def test_text_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(InvalidInputError, match="quantity: found"):
        parse(text)


def test_value_not_notation_decides_equality_order_and_hash() -> None:
    assert parse("1Ki") == parse("1024") == parse("1024000m")
    assert len({parse("1Ki"), parse("1024"), parse("1.024k")}) == 1
    assert parse("1G") < parse("1Gi") < parse("2G")
    assert parse("-1") < ZERO < parse("1n")
    assert parse("1") != "1"


def test_exponents_too_large_to_write_out_still_compare() -> None:
    huge = parse("1e2000000000")
    assert huge > parse("9Ei")
    assert -huge < parse("-9Ei")
    assert huge == parse("10e1999999999")


def test_a_sum_too_large_to_write_out_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="more than 2000 digits"):
        parse("1e2000000000") + parse("1")


@pytest.mark.parametrize(
    ("left", "right", "total", "rest"),
    [
        ("1Gi", "512Mi", "1536Mi", "512Mi"),
        ("1", "1m", "1001m", "999m"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "1", "1073741825", "1073741823"),
        ("1k", "1Ki", "2024", "-24"),
        ("8Ei", "8Ei", "18446744073709551614", "0"),
    ],
)
def test_sum_and_difference_are_exact(left: str, right: str, total: str, rest: str) -> None:
    assert str(parse(left) + parse(right)) == total
    assert str(parse(left) - parse(right)) == rest


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("40Gi", 40 * 2**30),
        ("1e3", 1000),
        ("-5", -5),
        # Not integers to Kubernetes' fast conversion, whatever their value.
        ("1000m", None),
        ("1.0", None),
        ("1.5Gi", None),
        ("1E", 10**18),
        ("10E", None),
        ("9223372036854775807", None),
        ("16Ei", None),
    ],
)
def test_integer_as_kubernetes_converts_it(text: str, integer: int | None) -> None:
    assert parse(text).as_int64() == integer


def test_format_is_that_of_the_text() -> None:
    assert parse("1Gi").format is Format.BINARY
    assert parse("1G").format is Format.DECIMAL
    assert parse("1e9").format is Format.EXPONENT
    assert parse("0.5Ki").format is Format.BINARY
    assert parse("0.0001Ki").format is Format.DECIMAL
    assert str(Quantity(2**30, format=Format.BINARY)) == "1Gi"


def test_the_smallest_integer_is_its_own_negative_only_where_the_result_is_narrow() -> None:
    smallest = Quantity(-(2**63))
    assert Quantity(0) - smallest == smallest
    assert Quantity(5) - smallest == Quantity(5 - 2**63)
    assert Quantity(-5) - smallest == Quantity(2**63 - 5, wide=True)
    assert parse("1.5") - smallest == Quantity(2**63 * 10 + 15, -1, wide=True)


def test_what_no_double_and_no_int64_holds_is_infinite_and_the_most() -> None:
    huge = parse("9" * 400)
    assert huge.as_approximate_float() == float("inf")
    assert (-huge).as_approximate_float() == float("-inf")
    assert huge.as_approximate_int() == 2**63 - 1
    assert (-huge).as_approximate_int() == -(2**63)
    assert parse("1500m").as_approximate_int() == 1


@pytest.mark.parametrize("text", ["1e-99999999", "-7.5e-2147483648", "0e-99999999"])
def test_an_amount_however_small_is_read_at_once_and_rounded_up_to_nano(text: str) -> None:
    nano = parse("1n")
    wanted = {"1": nano, "-": -nano, "0": parse("0")}[text[0]]
    assert parse(text) == wanted
