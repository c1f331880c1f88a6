from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from dragoon.allocator.gang.model import Change, Missing, NoRoom, Refused, SearchStopped
from dragoon.api.gang import GangStatus, Phase, gang_of
from dragoon.api.gang_plan import HeldMember, Plan, PlannedMember, Step
from dragoon.gang.discovering.checking import Fault
from dragoon.gang.protocol.actions import Note
from dragoon.gang.protocol.model import Member, Ref
from dragoon.gang.standing.sight import Sight
from dragoon.gang.standing.telling import is_urgent, merge_patch, status_of
from dragoon.kube.patching import merged
from tests.unit.gang.records_for_tests import gang

NOW = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)


def member(name: str, *, node: str = "", phase: str = "Pending", complete: bool = True) -> Member:
    ref = Ref("team", name, f"pod-{name}", "1")
    return Member(ref, gated=not node, node=node, phase=phase, complete=complete)


def sight(*members: Member, **parts: Any) -> Sight:
    values: dict[str, Any] = {"gang": gang(), "now": NOW, "members": members}
    return Sight(**(values | parts))


def plan(step: Step, *, members: int = 2, held: int = 0) -> Plan:
    return Plan(
        version=1,
        serial=1,
        step=step,
        since="",
        members=tuple(
            PlannedMember(pod=f"p{index}", uid=f"u{index}", node="n0") for index in range(members)
        ),
        held=tuple(
            HeldMember(pod=f"p{index}", uid=f"u{index}", node="n0") for index in range(held)
        ),
    )


def conditions(status: GangStatus) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in status.conditions}


def test_a_gang_waits_for_the_pods_that_are_missing() -> None:
    status = status_of(sight(member("a")))
    assert (status.phase, status.waiting_for) == (Phase.GATHERING, "1 of 2 pods")
    assert conditions(status)["Complete"] == ("False", "PodsMissing")
    assert status.missing_since == "2026-11-29T20:00:00Z"


def test_then_for_their_claims_by_name_with_hints() -> None:
    status = status_of(sight(member("a"), member("b", complete=False), hints=("why",)))
    assert status.waiting_for == "claims of pod b; why"
    assert conditions(status)["Complete"] == ("False", "ClaimsMissing")


def test_what_is_missing_for_too_long_is_overdue() -> None:
    since = (NOW - timedelta(seconds=300)).strftime("%Y-%m-%dT%H:%M:%SZ")
    late = gang(status={"missingSince": since})
    status = status_of(sight(member("a"), gang=late))
    assert status.waiting_for == "1 of 2 pods, overdue"
    assert conditions(status)["Complete"] == ("False", "TimedOut")
    assert status.missing_since == since


def test_a_fault_is_the_phase_and_the_reason() -> None:
    fault = Fault("TwoSizes", "size: found 2 and 3")
    status = status_of(sight(member("a"), member("b"), faults=(fault,)))
    assert (status.phase, status.waiting_for) == (Phase.INVALID, "size: found 2 and 3")
    assert conditions(status)["Valid"] == ("False", "TwoSizes")


def test_no_room_says_why_and_what_would_help() -> None:
    outcome = NoRoom(
        message="2 of 2 do not fit",
        never=False,
        fitting=0,
        wanted=2,
        missing=(Missing(("a", "b"), 2, 1, "gpu: 1 of 2 free"),),
        change=Change("release", "release claim team/x", ("team/x",)),
        explanation=("node n0: 1 free",),
    )
    status = status_of(sight(member("a"), member("b"), outcome=outcome, blockers=("team/other",)))
    assert (status.phase, status.waiting_for) == (Phase.WAITING, "2 of 2 do not fit")
    assert conditions(status)["Placed"] == ("False", "NoRoom")
    assert status.explanation == (
        "2 of 2 do not fit",
        "a, b: 1 of 2 fit; gpu: 1 of 2 free",
        "it would fit: release claim team/x",
        "held by gang team/other",
        "node n0: 1 free",
    )


def test_never_stopped_and_refused_are_different_answers() -> None:
    members = (member("a"), member("b"))
    never = NoRoom(message="m", never=True, fitting=0, wanted=2)
    for outcome, reason in (
        (never, "Never"),
        (SearchStopped(5, "m"), "SearchStopped"),
        (Refused("m", "instead:\n  this"), "Refused"),
    ):
        status = status_of(sight(*members, outcome=outcome))
        assert conditions(status)["Placed"] == ("False", reason)
    assert status.explanation == ("m", "instead:", "  this")


def test_each_step_of_a_plan_is_a_phase() -> None:
    members = (member("a"), member("b"))
    expected = {
        Step.FENCE: Phase.FENCING,
        Step.WAIT: Phase.FENCING,
        Step.COMMIT: Phase.COMMITTING,
        Step.VERIFY: Phase.COMMITTING,
        Step.UNGATE: Phase.BINDING,
        Step.RELEASE: Phase.RELEASING,
    }
    for step in Step:
        held = 2 if step is Step.HOLD else 0
        status = status_of(sight(*members, plan=plan(step, members=2 - held, held=held)))
        assert status.phase == expected.get(step, Phase.BINDING)


def test_a_gang_whose_minimum_is_bound_runs_whatever_a_later_round_does() -> None:
    members = (member("a", node="n0"), member("b", node="n0"), member("c"))
    status = status_of(sight(*members, plan=plan(Step.FENCE, members=1, held=2)))
    assert (status.phase, status.members.summary) == (Phase.RUNNING, "2/2")
    assert conditions(status)["Satisfied"] == ("True", "Bound")
    assert conditions(status)["Allocated"] == ("True", "Allocated")


def test_a_member_that_is_lost_makes_it_unsatisfied_again() -> None:
    held = plan(Step.HOLD, members=0, held=2)
    whole = status_of(sight(member("a", node="n0"), member("b", node="n0"), plan=held))
    assert conditions(whole)["Satisfied"] == ("True", "Bound")
    lost = status_of(sight(member("a", node="n0"), member("b", phase="Failed"), plan=held))
    assert conditions(lost)["Satisfied"] == ("False", "NotBound")
    assert lost.phase is Phase.GATHERING


def test_members_that_have_done_their_work_are_not_missed() -> None:
    members = (member("a", node="n0"), member("b", node="n0", phase="Succeeded"))
    assert status_of(sight(*members)).phase is Phase.RUNNING
    done = (member("a", node="n0", phase="Succeeded"), member("b", node="n0", phase="Succeeded"))
    status = status_of(sight(*done))
    assert (status.phase, status.waiting_for) == (Phase.FINISHED, "")


def test_a_stuck_member_is_the_phase() -> None:
    note = Note("Stuck", "pod a cannot be bound on node n0: cpu")
    status = status_of(
        sight(member("a"), member("b", node="n0"), plan=plan(Step.HOLD), notes=(note,))
    )
    assert (status.phase, status.waiting_for) == (Phase.STUCK, note.message)
    assert conditions(status)["Satisfied"] == ("False", "Stuck")


def test_the_same_sight_writes_nothing_again() -> None:
    seen = sight(member("a"))
    status = status_of(seen)
    again = status_of(
        replace(
            seen,
            gang=msgspec.structs.replace(seen.gang, status=status),
            now=NOW + timedelta(seconds=10),
        )
    )
    assert again == status
    assert merge_patch(status, again) == {}


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    seen = sight(member("a"))
    status = status_of(seen)
    later = NOW + timedelta(minutes=1)
    complete = status_of(
        replace(
            seen,
            gang=msgspec.structs.replace(seen.gang, status=status),
            members=(member("a"), member("b")),
            now=later,
        )
    )
    changed, same = complete.condition("Complete"), complete.condition("Valid")
    assert changed is not None
    assert same is not None
    assert changed.last_transition_time == "2026-11-29T20:01:00Z"
    assert same.last_transition_time == "2026-11-29T20:00:00Z"
    assert complete.missing_since == ""
    assert complete.complete_since == "2026-11-29T20:01:00Z"


def test_the_patch_turns_the_old_status_into_the_new_one_and_leaves_the_plan() -> None:
    old = status_of(sight(member("a", node="n0"), member("b", node="n0"), plan=plan(Step.HOLD)))
    new = status_of(sight(member("a"), faults=(Fault("BadSize", "wrong"),)))
    raw = {"plan": {"serial": 1, "version": 1, "step": "Hold", "since": ""}}
    before = {**msgspec.to_builtins(old), **raw}
    after = merged(before, merge_patch(old, new))
    assert after["plan"] == raw["plan"]
    body = {"metadata": {"name": "g", "uid": "u"}, "spec": {"size": 2}, "status": after}
    assert msgspec.structs.replace(gang_of(body).status, plan=None) == new


def test_numbers_in_texts_are_not_urgent_and_reasons_are() -> None:
    members = (member("a"), member("b"))
    one = status_of(sight(*members, outcome=NoRoom("1 free", never=False, fitting=0, wanted=2)))
    two = status_of(sight(*members, outcome=NoRoom("2 free", never=False, fitting=0, wanted=2)))
    never = status_of(sight(*members, outcome=NoRoom("1 free", never=True, fitting=0, wanted=2)))
    assert not is_urgent(one, two)
    assert is_urgent(one, never)


def test_texts_are_as_long_as_the_crd_allows() -> None:
    long = "x" * 10_000
    status = status_of(
        sight(
            member("a"),
            member("b"),
            outcome=NoRoom(long, never=False, fitting=0, wanted=2, explanation=(long,) * 100),
        )
    )
    assert len(status.waiting_for) == 200
    assert len(status.explanation) == 64
    assert max(map(len, status.explanation)) == 2000
    assert max(len(one.message) for one in status.conditions) == 4096


def failing(since: datetime) -> Member:
    return replace(member("p0"), unschedulable="too few cpu", unschedulable_since=since)


def test_a_node_where_a_member_fails_to_be_bound_is_avoided_for_ten_minutes() -> None:
    held = Plan(
        version=1,
        serial=1,
        step=Step.HOLD,
        since="",
        held=(HeldMember(pod="p0", uid="pod-p0", node="n7"),),
    )
    soon = sight(failing(NOW - timedelta(seconds=5)), plan=held)
    assert status_of(soon).avoided == ()
    status = status_of(sight(failing(NOW - timedelta(seconds=31)), plan=held))
    (avoided,) = status.avoided
    assert (avoided.node, avoided.until) == ("n7", "2026-11-29T20:10:00Z")
    assert avoided.reason == "too few cpu"
    # Seen again it is not put off; afterwards it is forgotten.
    again = msgspec.structs.replace(gang(), status=status)
    later = sight(failing(NOW), plan=held, gang=again, now=NOW + timedelta(minutes=5))
    assert status_of(later).avoided == (avoided,)
    after = sight(member("p0", node="n8"), gang=again, now=NOW + timedelta(minutes=11))
    assert status_of(after).avoided == ()
