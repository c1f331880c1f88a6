"""The planner's outcome in the words that Kueue repeats."""

import pytest

from dragoon.allocator.gang.model import (
    Change,
    GangPlan,
    Missing,
    NoRoom,
    Outcome,
    Placement,
    PodAsk,
    Refused,
    Score,
    SearchStopped,
)
from dragoon.gang.kueue.answering import Verdict, answer_of


def no_room(*, never: bool) -> NoRoom:
    missing = Missing(("w-main-1",), 2, 1, "on node n0: 4 devices are there")
    return NoRoom(
        "1 of 2 members fit",
        never,
        1,
        2,
        missing=(missing,),
        change=Change("release", "it fits when team/busy has let go"),
        explanation=("class gpu: 8 left", "not in use: 4 left"),
    )


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (no_room(never=False), Verdict.NO_ROOM),
        (no_room(never=True), Verdict.NEVER),
        (SearchStopped(400, "the search stopped"), Verdict.NO_ROOM),
        (Refused("size: found 0"), Verdict.WRONG),
    ],
)
def test_every_outcome_has_its_verdict(outcome: Outcome, verdict: Verdict) -> None:
    answer = answer_of(outcome)
    assert (answer.verdict, answer.claims) == (verdict, ())
    assert answer.message


def test_the_reason_is_the_one_of_explain() -> None:
    assert answer_of(no_room(never=False)).message.splitlines() == [
        "1 of 2 members fit",
        "w-main-1: 1 of 2 fit; on node n0: 4 devices are there",
        "it would fit: it fits when team/busy has let go",
        "class gpu: 8 left",
        "not in use: 4 left",
    ]


def test_what_to_write_instead_is_told() -> None:
    answer = answer_of(Refused("such a claim exists only after scheduling", "kind: Template"))
    assert answer.message.splitlines()[1] == "kind: Template"


def test_a_reason_that_is_too_long_is_cut() -> None:
    assert len(answer_of(SearchStopped(1, "x" * 100_000)).message) <= 4096


def test_what_is_promised_is_every_claim_of_the_plan_once() -> None:
    claim = {"metadata": {"name": "w-main-0/gpu", "uid": "uid/main/0/gpu"}}
    ask = PodAsk("team", "w-main-0", "uid/main/0", claims=(claim,))
    plan = GangPlan(
        (Placement(ask, "n0", {"uid/main/0/gpu": {"devices": {}}}),),
        (),
        ("hostPorts",),
        Score((), 1, 1, 0),
    )
    answer = answer_of(plan)
    assert answer.verdict is Verdict.FITS
    (kept,) = answer.claims
    assert (kept.name, kept.uid, kept.allocation) == (
        "w-main-0/gpu",
        "uid/main/0/gpu",
        {"devices": {}},
    )
    assert answer.message.splitlines() == [
        "1 pod can be placed now, on n0",
        "not looked at: hostPorts",
    ]
