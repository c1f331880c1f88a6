"""The table of XIDs, against itself and against the page that shows it."""

import re
from pathlib import Path

import pytest

from dragoon.health.settings import HealthSettings
from dragoon.health.xids import INSTANCE_SCOPED, Meaning, condemns, describe, meaning

PAGE = Path(__file__).resolve().parents[3] / "docs/health.md"
SETTINGS = HealthSettings()


def numbers(line_begins: str) -> set[int]:
    """The numbers of one item of the page's list; `8-11` stands for all between."""
    (item,) = re.findall(
        rf"^- {line_begins}[^:]*: ([0-9,\-\s]+)\.$", PAGE.read_text(), re.MULTILINE
    )
    found: set[int] = set()
    for part in item.replace("\n", " ").split(","):
        first, _, last = part.strip().partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Ignored", Meaning.APPLICATION),
        ("Counted", Meaning.REMARK),
        ("Fatal", Meaning.FATAL),
    ],
)
def test_the_page_lists_what_the_table_says(line: str, expected: Meaning) -> None:
    table = {xid for xid in range(1000) if meaning(xid, SETTINGS) is expected}
    assert numbers(line) == table


def test_what_condemns_has_words_for_it() -> None:
    for xid in range(200):
        known = "not known" not in describe(xid)
        assert known is (meaning(xid, SETTINGS) is Meaning.FATAL)


def test_only_fatal_and_unknown_ones_condemn() -> None:
    trusting = HealthSettings(trust_unknown=True)
    for xid in range(200):
        assert condemns(xid, trusting) is (meaning(xid, SETTINGS) is Meaning.FATAL)
        assert condemns(xid, SETTINGS) is (
            meaning(xid, SETTINGS) in {Meaning.FATAL, Meaning.UNKNOWN}
        )


def test_what_can_be_about_one_instance_is_fatal() -> None:
    assert all(meaning(xid, SETTINGS) is Meaning.FATAL for xid in INSTANCE_SCOPED)
