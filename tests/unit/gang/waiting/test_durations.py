"""Until when pods run, and what may be backfilled."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoon.gang.records import PodRecord, job_record, pod_record
from dragoon.gang.waiting.backfilling import MARGIN, end_if_started, may_use
from dragoon.gang.waiting.durations import ANNOTATION_DURATION, duration, ends, latest

START = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def pod(
    *, said: str = "", deadline: int | None = None, started: bool = True, job: str = ""
) -> PodRecord:
    meta: dict[str, Any] = {"name": "p", "namespace": "team", "uid": "u"}
    if said:
        meta["annotations"] = {ANNOTATION_DURATION: said}
    if job:
        meta["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
        ]
    spec: dict[str, Any] = {"containers": [], "resourceClaims": [{"name": "c"}]}
    if deadline is not None:
        spec["activeDeadlineSeconds"] = deadline
    status = {"phase": "Running", "startTime": START.isoformat()} if started else {}
    return pod_record({"metadata": meta, "spec": spec, "status": status})


def job(deadline: int | None, *, started: bool = True) -> dict[str, Any]:
    raw = {
        "metadata": {"name": "j", "namespace": "team", "uid": "j"},
        "spec": {} if deadline is None else {"activeDeadlineSeconds": deadline},
        "status": {"startTime": START.isoformat()} if started else {},
    }
    return {"j": job_record(raw)}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("90m", 5400), ("1.5h", 5400), ("2d", 172800)],
)
def test_durations_are_read_in_seconds_minutes_hours_and_days(text: str, seconds: int) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "-5m", "0", "1w", "h", "5000d", "1e99"])
def test_what_is_no_duration_says_nothing(text: str) -> None:
    assert duration(text) is None


@pytest.mark.parametrize(
    ("one", "jobs", "minutes"),
    [
        (pod(said="30m"), {}, 30),
        (pod(deadline=600), {}, 10),
        (pod(said="30m", deadline=600), {}, 10),
        (pod(said="30m", job="j"), job(300), 5),
        (pod(said="30m", job="j"), job(None), 30),
        (pod(job="j"), job(1200), 20),
    ],
)
def test_the_first_end_that_was_said_counts(
    one: PodRecord, jobs: dict[str, Any], minutes: int
) -> None:
    assert ends(one, jobs, START) == START + minutes * MINUTE


@pytest.mark.parametrize(
    ("one", "jobs"),
    [
        (pod(), {}),
        (pod(said="30m", started=False), {}),
        (pod(said="soon"), {}),
        (pod(job="j"), job(300, started=False)),
        # batch/v1 takes any number that is not negative; of a pod at most 2**31 - 1.
        (pod(job="j"), job(10**12)),
        (pod(job="j"), job(2**63 - 1)),
        (pod(deadline=2**31 - 1), {}),
    ],
)
def test_an_end_that_nobody_said_is_not_known(one: PodRecord, jobs: dict[str, Any]) -> None:
    assert ends(one, jobs, START) is None


def test_a_deadline_beyond_all_calendars_takes_nothing_from_what_else_was_said() -> None:
    one = pod(said="30m", deadline=2**31 - 1, job="j")
    assert ends(one, job(2**63 - 1), START) == START + 30 * MINUTE
    assert end_if_started([one], job(2**63 - 1), START) == START + MARGIN + 30 * MINUTE


def test_who_has_outlived_what_was_said_has_said_nothing() -> None:
    one = pod(said="30m")
    assert ends(one, {}, START + 29 * MINUTE) is not None
    assert ends(one, {}, START + 30 * MINUTE) is None


def test_the_latest_is_not_known_where_one_is_not() -> None:
    assert latest([]) is None
    assert latest([START, None]) is None
    assert latest([START, START + MINUTE]) == START + MINUTE


def test_what_would_start_now_ends_after_the_margin_and_its_duration() -> None:
    waits = pod(said="30m", started=False)
    assert end_if_started([waits], {}, START) == START + MARGIN + 30 * MINUTE
    assert end_if_started([waits, pod(started=False)], {}, START) is None
    assert end_if_started([], {}, START) is None
    assert end_if_started([pod(job="j", started=False)], job(600), START) == START + 10 * MINUTE


def test_without_an_end_or_an_estimate_nothing_may_be_used() -> None:
    assert not may_use(None, START)
    assert not may_use(START, None)
    assert may_use(START, START)
    assert not may_use(START + MINUTE, START)
