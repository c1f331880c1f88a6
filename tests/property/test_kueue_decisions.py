"""What holds for every decision about a Workload of Kueue, whatever it looks like."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoon.gang.kueue.actions import Ask, Drop, Say, Wake
from dragoon.gang.kueue.answering import Answer, Verdict
from dragoon.gang.kueue.deciding import Pods, Settings, View, decide
from dragoon.gang.kueue.model import State
from dragoon.gang.kueue.reading import workload_of
from tests.unit.gang.kueue.workloads import CHECK, NOW, podset, state, workload

Object = dict[str, Any]
SETTINGS = Settings()
_AT = datetime.fromisoformat(NOW)

_states = st.sampled_from([str(one) for one in State])
_waits: st.SearchStrategy[Object] = st.sampled_from([{}, {"requeueAfterSeconds": 20}])


@st.composite
def entries(draw: st.DrawFn) -> list[Object]:
    names = draw(st.lists(st.sampled_from([CHECK, "too", "other"]), unique=True))
    return [
        state(
            draw(_states),
            name=name,
            message=draw(st.sampled_from(["", "old", "0 of 1 members fit"])),
            retryCount=draw(st.integers(0, 40)),
            **draw(_waits),
        )
        for name in names
    ]


@st.composite
def views(draw: st.DrawFn) -> View:
    true = draw(st.lists(st.sampled_from(["QuotaReserved", "Admitted", "Finished"]), unique=True))
    later = (_AT + timedelta(seconds=draw(st.integers(-100, 100)))).strftime("%Y-%m-%dT%H:%M:%SZ")
    raw = workload(
        "w",
        podset(draw(st.integers(0, 3)), template=draw(st.sampled_from(["one", ""]))),
        checks=draw(entries()),
        true=tuple(true),
        evicted=draw(st.sampled_from(["", "AdmissionCheck", "Preempted"])),
        spec={"active": draw(st.booleans())},
        requeueState=draw(st.one_of(st.just({}), st.just({"requeueAt": later}))),
    )
    verdict = draw(st.one_of(st.none(), st.sampled_from(Verdict)))
    answer = None
    if verdict is not None:
        answer = Answer(verdict, "told", never_for=draw(st.sampled_from([0.0, 1e6])))
    return View(
        workload_of(raw),
        frozenset((CHECK, "too")),
        _AT + timedelta(seconds=draw(st.integers(-10, 400))),
        100.0,
        _AT - timedelta(seconds=500),
        answer=answer,
        promised=draw(st.booleans()),
        rebuilt=draw(st.booleans()),
        pods=draw(st.builds(Pods, st.integers(0, 4), st.integers(0, 4))),
        not_before=draw(st.sampled_from([0.0, 200.0])),
        known=draw(st.sampled_from(["", "known"])),
        reminded=draw(st.sampled_from([0.0, 99.0])),
        waking=draw(st.booleans()),
    )


@given(views())
def test_one_write_at_most_and_never_to_the_checks_of_others(view: View) -> None:
    actions = decide(view, SETTINGS)
    writes = [one for one in actions if isinstance(one, Say | Wake)]
    assert len(writes) <= 1
    for said in writes:
        if not isinstance(said, Say):
            continue
        before = {one.name: one.raw for one in view.workload.checks}
        after = {one["name"]: one for one in said.checks}
        assert list(before) == list(after)
        assert all(after[one.name] == one.raw for one in view.others)


@given(views())
def test_it_may_start_only_where_the_planner_has_said_so_or_need_not_be_asked(view: View) -> None:
    for said in decide(view, SETTINGS):
        if isinstance(said, Say) and said.state is State.READY:
            fits = view.answer is not None and view.answer.verdict is Verdict.FITS
            assert fits or not view.workload.members
            assert view.workload.reserved
            assert not view.workload.is_over
            assert all(one.state is State.READY for one in view.others) or not view.workload.members


@given(views())
def test_a_job_is_deactivated_only_for_what_waiting_cannot_mend(view: View) -> None:
    for said in decide(view, SETTINGS):
        if isinstance(said, Say) and said.state is State.REJECTED:
            assert view.answer is not None
            lasted = view.answer.never_for >= SETTINGS.reject_after
            never = view.answer.verdict is Verdict.NEVER and lasted
            assert never or view.answer.verdict is Verdict.WRONG


@given(views())
def test_devices_are_kept_only_for_what_may_still_start(view: View) -> None:
    actions = decide(view, SETTINGS)
    workload = view.workload
    if any(isinstance(one, Ask) and one.hold for one in actions):
        assert workload.reserved
        assert (workload.is_over, workload.evicted) == (False, "")
    if view.promised and (workload.is_over or not workload.reserved or not view.checks):
        assert any(isinstance(one, Drop) for one in actions)


@given(views())
def test_what_was_just_answered_is_not_asked_again(view: View) -> None:
    if view.answer is not None and not (view.checks and view.checks[0].state is State.READY):
        assert not any(isinstance(one, Ask) for one in decide(view, SETTINGS))
