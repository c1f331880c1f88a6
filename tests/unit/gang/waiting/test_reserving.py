"""For which gang devices are kept: the largest of the first, after a while, and one at a time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoon.gang.waiting.reserving import (
    Decision,
    ReserveSettings,
    Waiting,
    decide,
    devices_asked,
    is_over,
)
from tests.unit.gang.records_for_tests import gang

NOW = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)
SETTINGS = ReserveSettings(after=300.0, most=1)
LONG_AGO = "2026-11-29T19:00:00Z"


def waiting(
    name: str,
    *,
    priority: int = 0,
    devices: int = 1,
    reserved: bool = False,
    has_no_room: bool = True,
    since: str = LONG_AGO,
    **more: Any,
) -> Waiting:
    status: dict[str, Any] = {"completeSince": since, **more.pop("status", {})}
    if reserved:
        status["reservation"] = {"since": since, "pools": [{"driver": "d", "pool": "p"}]}
    return Waiting(gang(name, status=status), priority, devices, has_no_room=has_no_room, **more)


def names(found: Decision) -> tuple[list[str], list[str]]:
    return [one.name for one in found.ending], [one.name for one in found.starting]


def test_the_highest_priority_then_the_most_devices_then_the_oldest() -> None:
    one, two = waiting("one", devices=8), waiting("two", priority=1)
    three, four = waiting("three", devices=16), waiting("four", devices=16)
    assert names(decide([one, two, three], NOW, SETTINGS)) == ([], ["two"])
    assert names(decide([one, three], NOW, SETTINGS)) == ([], ["three"])
    assert names(decide([three, four], NOW, SETTINGS)) == ([], ["four"])


def test_nothing_is_kept_before_a_gang_has_waited_long_enough() -> None:
    young = waiting("young", devices=9, since="2026-11-29T19:55:01Z")
    assert names(decide([young], NOW, SETTINGS)) == ([], [])
    assert names(decide([young], NOW + timedelta(seconds=1), SETTINGS)) == ([], ["young"])
    assert names(decide([young, waiting("old")], NOW, SETTINGS)) == ([], ["old"])


def test_what_is_kept_stays_with_its_gang_until_a_larger_one_comes() -> None:
    kept = waiting("kept", devices=4, reserved=True)
    assert names(decide([kept, waiting("same", devices=4)], NOW, SETTINGS)) == ([], [])
    assert names(decide([kept, waiting("small", devices=2)], NOW, SETTINGS)) == ([], [])
    larger = waiting("larger", devices=5)
    # The one lets go when something is kept for the other, which may find nothing to keep.
    found = decide([kept, larger], NOW, SETTINGS)
    assert names(found) == ([], ["larger"])
    assert [one.name for one in found.displaced] == ["kept"]
    taken_over = waiting("larger", devices=5, reserved=True)
    assert names(decide([kept, taken_over], NOW, SETTINGS)) == (["kept"], [])


def test_what_is_over_ends_before_anything_starts() -> None:
    spoiled = waiting("spoiled", devices=9, reserved=True, is_spoiled=True)
    found = decide([spoiled, waiting("other")], NOW, SETTINGS)
    assert (names(found), found.displaced) == ((["spoiled"], []), ())


def test_two_that_a_late_leader_wrote_become_one_again() -> None:
    found = decide(
        [waiting("a", reserved=True), waiting("b", devices=2, reserved=True)], NOW, SETTINGS
    )
    assert names(found) == (["a"], [])


def test_as_many_as_the_setting_says() -> None:
    several = [waiting(name, devices=size) for name, size in (("a", 1), ("b", 2), ("c", 3))]
    assert names(decide(several, NOW, ReserveSettings(most=2))) == ([], ["c", "b"])
    assert names(decide(several, NOW, ReserveSettings(most=0))) == ([], [])
    kept = waiting("kept", reserved=True)
    assert names(decide([kept], NOW, ReserveSettings(most=0))) == (["kept"], [])


@pytest.mark.parametrize(
    "one",
    [
        waiting("x", has_no_room=False),
        waiting("x", tried_in_vain=True),
        waiting("x", since=""),
        waiting(
            "x", status={"plan": {"version": 1, "serial": 1, "step": "Fence", "since": LONG_AGO}}
        ),
    ],
    ids=["may fit", "tried in vain", "not complete", "is being placed"],
)
def test_for_whom_nothing_is_kept(one: Waiting) -> None:
    assert names(decide([one], NOW, SETTINGS)) == ([], [])


@pytest.mark.parametrize(
    ("status", "over"),
    [
        ({"phase": "Waiting"}, False),
        ({"phase": "Invalid"}, True),
        ({"phase": "Finished"}, True),
        ({"missingSince": "2026-11-29T19:59:30Z"}, False),
        ({"missingSince": "2026-11-29T19:58:59Z"}, True),
        *(
            ({"plan": {"version": 1, "serial": 1, "step": step, "since": LONG_AGO}}, over)
            for step, over in (
                *(("Fence", False), ("Wait", False), ("Commit", False), ("Verify", False)),
                *(("Release", False), ("Ungate", True), ("Hold", True)),
            )
        ),
    ],
)
def test_what_is_kept_ends_when_the_gang_is_served_or_gives_up(
    status: dict[str, Any], over: bool
) -> None:
    one = waiting("x", reserved=True, status=status)
    assert is_over(one.gang, NOW) is over
    assert names(decide([one], NOW, SETTINGS)) == (["x"] if over else [], [])


def test_what_cannot_come_true_ends_so_that_it_is_chosen_anew() -> None:
    spoiled = waiting("x", reserved=True, is_spoiled=True)
    assert names(decide([spoiled], NOW, SETTINGS)) == (["x"], [])


def test_devices_are_counted_from_what_claims_ask_for() -> None:
    def claim(*requests: dict[str, Any]) -> dict[str, Any]:
        return {"spec": {"devices": {"requests": list(requests)}}}

    asked = [
        claim({"name": "a", "exactly": {"count": 4}}, {"name": "b", "exactly": {}}),
        claim({"name": "c", "firstAvailable": [{"count": 2}, {"count": 8}]}),
        claim({"name": "d", "exactly": {"allocationMode": "All"}}),
        {},
    ]
    assert devices_asked(asked) == 4 + 1 + 2 + 1
