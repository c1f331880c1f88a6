"""What is done about a Workload, and about an AdmissionCheck."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from dragoon.api import gang
from dragoon.gang.kueue.actions import Again, Ask, Drop, Say, SetConditions, Wake
from dragoon.gang.kueue.answering import Answer, Verdict
from dragoon.gang.kueue.deciding import Pods, Settings, View, decide, decide_check
from dragoon.gang.kueue.model import State
from dragoon.gang.kueue.reading import check_of, workload_of
from tests.unit.gang.kueue.workloads import CHECK, NOW, check, podset, state, workload

Object = dict[str, Any]
TICK = 100.0
SETTINGS = Settings(promise=300, first_retry=5, last_retry=60, reject_after=600, remind=5)
FITS = Answer(Verdict.FITS, "1 pod can be placed now, on n0")
NO_ROOM = Answer(Verdict.NO_ROOM, "0 of 1 members fit")
READY = ("QuotaReserved", "Admitted")


def at(seconds: float = 0.0) -> datetime:
    return datetime.fromisoformat(NOW) + timedelta(seconds=seconds)


def view(raw: Object, **more: Any) -> View:
    seen: dict[str, Any] = {
        "ours": frozenset((CHECK,)),
        "now": at(),
        "tick": TICK,
        "since": at(-1000),
    }
    return View(workload_of(raw), **(seen | more))


def decided(raw: Object, **more: Any) -> tuple[Any, ...]:
    return decide(view(raw, **more), SETTINGS)


def said(raw: Object, **more: Any) -> Say:
    (action,) = decided(raw, **more)
    assert isinstance(action, Say)
    assert action.workload.version == "7"
    return action


def test_a_pending_check_is_answered_after_the_planner_was_asked() -> None:
    assert decided(workload()) == (Ask(hold=True),)
    ready = said(workload(), answer=FITS)
    assert ready.state is State.READY
    (entry,) = ready.checks
    assert (entry["name"], entry["state"], entry["message"]) == (CHECK, "Ready", FITS.message)
    assert entry["lastTransitionTime"] == NOW
    (update,) = entry["podSetUpdates"]
    assert update["annotations"] == {gang.ANNOTATION_WORKLOAD: "uid-job-train"}


def test_without_room_it_is_tried_again_ever_later() -> None:
    waits = [
        said(workload(checks=[state(retryCount=tries)]), answer=NO_ROOM).checks[0]
        for tries in (0, 1, 2, 3, 4, 50)
    ]
    assert [one["requeueAfterSeconds"] for one in waits] == [5, 10, 20, 40, 60, 60]
    assert {one["state"] for one in waits} == {"Retry"}
    assert waits[1]["retryCount"] == 1
    assert all(one["message"] == NO_ROOM.message for one in waits)


def test_a_kueue_that_knows_no_waiting_is_not_answered_faster_for_it() -> None:
    assert decided(workload(), answer=NO_ROOM, not_before=TICK + 3) == (Again(TICK + 3),)
    # What fits is said at once all the same.
    assert said(workload(), answer=FITS, not_before=TICK + 3).state is State.READY


def test_one_that_can_never_fit_is_rejected_once_that_has_lasted() -> None:
    def never(seconds: float) -> State | None:
        answer = Answer(Verdict.NEVER, "0 of 1 members fit", never_for=seconds)
        return said(workload(), answer=answer).state

    # A node that boots has no devices for a while: that is no reason to deactivate a job.
    assert never(0) is State.RETRY
    assert never(599) is State.RETRY
    assert never(600) is State.REJECTED


def test_one_that_is_wrong_in_itself_is_rejected_at_once() -> None:
    answer = Answer(Verdict.WRONG, "such a claim exists only after scheduling")
    rejected = said(workload(), answer=answer)
    assert (rejected.state, rejected.message) == (State.REJECTED, answer.message)


def test_one_without_claims_is_ready_without_a_question() -> None:
    ready = said(workload("w", podset(3, template="")))
    assert ready.state is State.READY
    assert "no pod of it names a resource claim" in ready.message
    assert "podSetUpdates" not in ready.checks[0]


def test_nothing_is_said_before_it_has_quota() -> None:
    assert decided(workload(true=())) == ()
    assert decided(workload(true=()), waking=True) == ()


def test_checks_of_others_are_left_as_they_are_and_come_first() -> None:
    other = state(name="other", message="not ours")
    assert decided(workload(checks=[other])) == ()
    assert decided(workload(checks=[other, state()])) == ()
    done = state("Ready", name="other", podSetUpdates=[{"name": "main"}])
    ready = said(workload(checks=[done, state()]), answer=FITS)
    assert ready.checks[0] == done
    assert ready.checks[1]["state"] == "Ready"


def test_two_checks_of_ours_get_one_answer() -> None:
    raw = workload(checks=[state(), state(name="too")])
    ready = said(raw, answer=FITS, ours=frozenset((CHECK, "too")))
    assert [one["state"] for one in ready.checks] == ["Ready", "Ready"]


def sent_back(**more: Any) -> Object:
    """As Kueue 0.17 leaves it until it is time for the next try: with its quota."""
    entry = state("Retry", message="old", requeueAfterSeconds=20, **more)
    return workload(checks=[entry], requeueState={"requeueAt": "2026-11-29T12:00:20Z"})


def test_one_that_was_sent_back_starts_as_soon_as_there_is_room() -> None:
    assert decided(sent_back()) == ()
    assert decided(sent_back(), waking=True) == (Ask(hold=True),)
    ready = said(sent_back(), waking=True, answer=FITS)
    assert (ready.state, ready.at_once) == (State.READY, True)
    assert "requeueAfterSeconds" not in ready.checks[0]


def test_as_long_as_there_is_none_only_the_reason_is_kept_up_to_date() -> None:
    told = said(sent_back(), waking=True, answer=NO_ROOM)
    assert told.state is None
    (entry,) = told.checks
    assert (entry["state"], entry["requeueAfterSeconds"]) == ("Retry", 20)
    assert entry["message"] == NO_ROOM.message
    same = Answer(Verdict.NO_ROOM, "old")
    assert decided(sent_back(), waking=True, answer=same) == ()
    # Numbers change with every pod that comes or goes.
    again = decided(sent_back(), waking=True, answer=NO_ROOM, reminded=TICK - 2)
    assert again == (Again(TICK + 3),)


def without_quota(*, other: Object | None = None) -> Object:
    """As a Kueue leaves it that takes the quota back at once."""
    reset = state(message="Reset to Pending after eviction. Previously: Retry")
    reset["requeueAfterSeconds"] = 20
    checks = [reset] if other is None else [reset, other]
    wait = {"requeueAt": "2026-11-29T12:00:20Z"}
    return workload(true=(), evicted="AdmissionCheck", checks=checks, requeueState=wait)


def test_without_quota_it_is_woken_when_it_would_fit() -> None:
    assert decided(without_quota(), waking=True) == (Ask(hold=False),)
    (wake,) = decided(without_quota(), waking=True, answer=FITS)
    assert isinstance(wake, Wake)
    # Its time has come: Kueue tries it by itself.
    assert decided(without_quota(), waking=True, answer=FITS, now=at(21)) == ()


def test_a_wait_that_another_check_asked_for_is_not_ended() -> None:
    other = state(name="other", requeueAfterSeconds=600)
    assert decided(without_quota(other=other), waking=True, answer=FITS) == ()


def test_the_reason_that_kueue_has_wiped_is_written_again() -> None:
    told = said(without_quota(), known="0 of 1 members fit")
    assert told.state is None
    assert told.checks[0]["message"] == "0 of 1 members fit"
    assert told.checks[0]["state"] == "Pending"
    assert decided(without_quota()) == ()


def ready(*, since: float = 0.0, true: tuple[str, ...] = READY, count: int = 2) -> Object:
    stamp = at(since).strftime("%Y-%m-%dT%H:%M:%SZ")
    return workload("w", podset(count), true=true, checks=[state("Ready", since=stamp)])


def test_a_promise_stands_until_all_its_pods_are_placed() -> None:
    assert decided(ready(), promised=True) == (Again(TICK + 300),)
    assert decided(ready(), promised=True, pods=Pods(2, 1)) == (Again(TICK + 300),)
    assert decided(ready(), promised=True, pods=Pods(2, 2)) == (Drop("its pods are placed"),)


def test_after_a_restart_it_is_made_again_once() -> None:
    assert decided(ready(since=-100)) == (Ask(hold=True), Again(TICK + 200))
    # There was no room for it any more: that is not asked over and over.
    assert decided(ready(since=-100), rebuilt=True) == (Again(TICK + 200),)
    # While this process was away nobody could place its pods: they get their time.
    assert decided(ready(since=-5000), since=at(-10), promised=True) == (Again(TICK + 290),)
    # Kueue has not admitted it yet: that counts as well.
    assert decided(ready(true=("QuotaReserved",)))[0] == Ask(hold=True)


def test_one_whose_pods_nobody_could_place_goes_back_into_the_queue() -> None:
    late = decided(ready(since=-400), promised=True, pods=Pods(2, 0))
    assert late[0] == Drop("the time is over")
    assert isinstance(late[1], Say)
    assert late[1].state is State.RETRY
    assert "none could be placed within 300 s" in late[1].message


@pytest.mark.parametrize("pods", [Pods(0, 0), Pods(2, 1)])
def test_one_that_has_begun_or_whose_pods_are_not_seen_is_left_alone(pods: Pods) -> None:
    assert decided(ready(since=-400), promised=True, pods=pods) == (Drop("the time is over"),)
    assert decided(ready(since=-400), pods=pods) == ()


@pytest.mark.parametrize(
    "raw",
    [
        workload(true=(*READY, "Finished")),
        workload(spec={"active": False}),
        workload(true=()),
        workload(evicted="Preempted"),
        workload(checks=[state("Rejected")]),
        workload(checks=[state("Retry")]),
        workload(checks=[]),
        workload(checks=[state(), state(name="other")]),
    ],
)
def test_a_promise_ends_with_its_reason(raw: Object) -> None:
    (action,) = decided(raw, promised=True)
    assert isinstance(action, Drop)
    assert decided(raw) == ()


def test_a_check_of_ours_is_active_and_that_is_written_once() -> None:
    action = decide_check(check_of(check()), at())
    assert isinstance(action, SetConditions)
    (condition,) = action.conditions
    assert (condition["type"], condition["status"]) == ("Active", "True")
    assert condition["lastTransitionTime"] == NOW
    active = check() | {"status": {"conditions": list(action.conditions)}}
    assert decide_check(check_of(active), at(5)) is None


def test_a_check_with_parameters_is_not_active_and_says_why() -> None:
    parameters = {"apiGroup": "a.b", "kind": "Config", "name": "c"}
    raw = check(parameters=parameters)
    raw["status"] = {
        "conditions": [
            {"type": "Active", "status": "True", "lastTransitionTime": NOW, "reason": "Active"},
            {"type": "Foreign", "status": "True"},
        ]
    }
    action = decide_check(check_of(raw), at(9))
    assert action is not None
    assert action.conditions[0] == {"type": "Foreign", "status": "True"}
    told = action.conditions[1]
    assert (told["status"], told["reason"]) == ("False", "BadParameters")
    assert told["message"] == "spec.parameters: found a.b/Config/c, allowed is none"
    assert told["lastTransitionTime"] == "2026-11-29T12:00:09Z"


def test_a_check_of_another_controller_is_not_ours() -> None:
    assert decide_check(check_of(check(controller="kueue.x-k8s.io/multikueue")), at()) is None
