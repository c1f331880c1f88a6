"""Versions: strict SemVer 2.0.0, and CEL's lenient form."""

import itertools

import pytest

from dragoon.errors import InvalidInputError
from dragoon.semver import Version, parse, parse_lenient


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0",
        "1.2.3",
        "580.95.5",
        "1.0.0-rc.1",
        "1.0.0-0.x-y.--",
        "1.0.0+001.b",
        "1.0.0-a+b",
        "18446744073709551615.0.0",
    ],
)
def test_strict_version_reads_and_writes_itself(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "01.2.3",
        "1.02.3",
        "1.2.03",
        "v1.2.3",
        "1.2.3-",
        "1.2.3+",
        "1.2.3-a..b",
        "1.2.3-01",
        "1.2.3-\u00e4",
        "1.2.3+a..b",
        "1.2.3 ",
        "-1.2.3",
        "18446744073709551616.0.0",
        "1.2.3-18446744073709551616",
        "1.2.\u0663",
    ],
)
def test_anything_else_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(InvalidInputError, match="version: found"):
        parse(text)


def test_precedence_is_that_of_the_specification() -> None:
    rising = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1",
        "1.1.0",
        "2.0.0",
        "10.0.0",
    ]
    for low, high in itertools.pairwise(map(parse, rising)):
        assert low < high
        assert low.compare(high) == -1
        assert high.compare(low) == 1


def test_build_metadata_does_not_count() -> None:
    assert parse("1.0.0+a") == parse("1.0.0+b") == parse("1.0.0")
    assert hash(parse("1.0.0+a")) == hash(parse("1.0.0"))
    assert parse("1.0.0") != "1.0.0"


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("1", "1.0.0"),
        ("v1", "1.0.0"),
        ("v1.2", "1.2.0"),
        ("01.02.03", "1.2.3"),
        ("1.2.03-rc", "1.2.3-rc"),
        ("00", "0.0.0"),
        ("535.104", "535.104.0"),
    ],
)
def test_lenient_version_is_normalised(text: str, strict: str) -> None:
    assert parse_lenient(text) == parse(strict)


@pytest.mark.parametrize("text", ["", "v", "vv1", "1-rc", "1.2+b", "1.2.3.4", " 1", "V1"])
def test_lenient_form_has_limits(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_lenient(text)


def test_parts_can_be_read() -> None:
    assert parse("1.2.3-rc.4+b.5") == Version(1, 2, 3, ("rc", 4), ("b", "5"))
