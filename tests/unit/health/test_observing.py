"""What is told of two judgements in a row."""

from dragoon.gpu.model import PciAddress
from dragoon.health.observing import Changed, changes
from dragoon.health.verdict import CardHealth, Effect, Kind, Verdict

ONE, TWO = PciAddress(0, 1, 0), PciAddress(0, 2, 0)
XID = Verdict(Kind.XID, "79", "fell off the bus", 5.0, Effect.NO_SCHEDULE)
LINK = Verdict(Kind.NVLINK, "", "a link is down", 5.0, Effect.NO_SCHEDULE)


def card(*verdicts: Verdict) -> CardHealth:
    return CardHealth(None, verdicts)


def test_verdicts_that_came_and_went_are_told_for_each_card() -> None:
    before, now = {ONE: card(XID), TWO: card()}, {ONE: card(LINK), TWO: card(XID)}
    assert list(changes(before, now)) == [
        Changed(ONE, (LINK,), (XID,), now),
        Changed(TWO, (XID,), (), now),
    ]


def test_a_card_that_was_not_known_has_only_new_verdicts() -> None:
    now = {ONE: card(XID), TWO: card()}
    assert list(changes({}, now)) == [Changed(ONE, (XID,), (), now)]


def test_the_same_verdict_in_other_words_is_no_change() -> None:
    later = Verdict(Kind.XID, "79", "it fell off the bus", 6.0, Effect.NO_SCHEDULE)
    assert not list(changes({ONE: card(XID)}, {ONE: card(later)}))
