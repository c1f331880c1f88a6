"""Workloads as Kueue's API has them."""

from datetime import UTC, datetime

import pytest

from dragoon.gang.kueue.model import State
from dragoon.gang.kueue.reading import check_of, workload_of
from tests.unit.gang.kueue.workloads import check, podset, state, workload


def test_a_workload_that_waits_for_its_checks() -> None:
    raw = workload("w", podset(2), checks=[state(retryCount=3), state("Ready", name="other")])
    found = workload_of(raw)
    assert found.reserved
    assert (found.admitted, found.is_over, found.evicted) == (False, False, "")
    assert found.owners == ("Job",)
    assert [(one.name, one.state, one.retries) for one in found.checks] == [
        ("placeable", State.PENDING, 3),
        ("other", State.READY, 0),
    ]
    assert found.checks[0].since == datetime(2026, 11, 29, 12, tzinfo=UTC)
    assert [(one.count, one.flavors) for one in found.podsets] == [(2, ("any",))]


def test_one_that_was_sent_back() -> None:
    raw = workload(
        true=(), evicted="AdmissionCheck", requeueState={"requeueAt": "2026-11-29T12:00:10Z"}
    )
    found = workload_of(raw)
    assert (found.reserved, found.evicted) == (False, "AdmissionCheck")
    assert found.requeue_at == datetime(2026, 11, 29, 12, 0, 10, tzinfo=UTC)


def test_an_eviction_that_is_over_is_none() -> None:
    raw = workload()
    raw["status"]["conditions"].append(
        {"type": "Evicted", "status": "False", "reason": "Preempted"}
    )
    assert workload_of(raw).evicted == ""


@pytest.mark.parametrize(
    "raw",
    [
        workload(true=("Finished",)),
        workload(spec={"active": False}),
        workload() | {"metadata": workload()["metadata"] | {"deletionTimestamp": "now"}},
    ],
)
def test_nothing_is_done_for_one_that_is_over(raw: dict) -> None:  # type: ignore[type-arg]
    assert workload_of(raw).is_over


def test_a_state_that_kueue_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="Perhaps"):
        workload_of(workload(checks=[state("Perhaps")]))


def test_a_check_with_parameters() -> None:
    named = {"apiGroup": "x.example.com", "kind": "Config", "name": "c"}
    assert check_of(check(parameters=named)).parameters == "x.example.com/Config/c"
    assert check_of(check()).parameters == ""
