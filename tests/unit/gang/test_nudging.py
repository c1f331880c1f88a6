"""Kubelets are woken once per failure, and pods whose claim is refused are evicted with care."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoon.gang.nudging import Later, NudgeSettings, nudge
from dragoon.gang.protocol.actions import Action, Evict, Note, Nudge, WaitUntil
from dragoon.gang.records import pod_record
from dragoon.gang.refused import Evicted, Evictions, EvictionSettings, refused

Raw = dict[str, Any]
_DRIVER = "gpu.dragoon.dev"
_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _pod(**status: Any) -> Raw:
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job", "controller": True}
    meta = {"name": "p", "namespace": "team", "uid": "uid-p", "resourceVersion": "5"}
    return {
        "metadata": {**meta, "ownerReferences": [job]},
        "spec": {
            "nodeName": "node-0",
            "containers": [],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
        },
        "status": {"phase": "Pending", **status},
    }


def _claim(*, driver: str = _DRIVER, on_refusal: str = "", refused: bool = False) -> Raw:
    result = {"request": "gpu", "driver": driver, "pool": "node-0/gpu", "device": "gpu-0"}
    status: Raw = {"allocation": {"devices": {"results": [result]}}}
    status["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "uid-p"}]
    if refused:
        ready = {
            "type": "Ready",
            "status": "False",
            "reason": "DeviceLost",
            "message": "it is gone",
        }
        data = {"onRefusal": on_refusal} if on_refusal else {}
        entry = {"driver": _DRIVER, "pool": "node-0/gpu", "device": "gpu-0", "data": data}
        status["devices"] = [{**entry, "conditions": [ready]}]
    return {"metadata": {"name": "c", "namespace": "team", "uid": "uid-c"}, "status": status}


def _event(count: int = 1, *, uid: str = "uid-p", name: str = "e") -> Raw:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "reason": "FailedPrepareDynamicResources",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "team", "uid": uid},
        "deprecatedCount": count,
    }


def _nudge(event: Raw, pod: Raw | None, claim: Raw | None = None) -> Nudge | Later | None:
    claim = claim or _claim()
    return nudge(
        event,
        None if pod is None else pod_record(pod),
        lambda _namespace, name: claim if name == "c" else None,
        driver=_DRIVER,
        now=_NOW,
        settings=NudgeSettings(),
    )


def _nudged(pod: Raw, found: Nudge | Later | None, ago: float = 0.0) -> Raw:
    """The pod with the annotation that the nudge writes, as if written so many seconds ago."""
    assert isinstance(found, Nudge)
    this = found.event.partition(" ")[0]
    at = (_NOW - timedelta(seconds=ago)).isoformat(timespec="seconds")
    meta = {**pod["metadata"], "annotations": {"dragoon.dev/nudged": f"{this} {at}"}}
    return {**pod, "metadata": meta}


def test_a_pod_whose_prepare_failed_is_nudged_at_once() -> None:
    found = _nudge(_event(), _pod())

    assert isinstance(found, Nudge)
    assert found.pod.name == "p"


def test_the_annotation_is_read_again_as_it_was_written() -> None:
    pod = _pod()
    found = _nudge(_event(), pod)
    assert isinstance(found, Nudge)
    pod["metadata"]["annotations"] = {"dragoon.dev/nudged": found.event}

    assert _nudge(_event(), pod) is None


def test_for_one_event_it_is_nudged_once_whatever_process_looks() -> None:
    pod = _nudged(_pod(), _nudge(_event(), _pod()), ago=3600)

    assert _nudge(_event(), pod) is None


@pytest.mark.parametrize(("count", "seconds"), [(2, 4.0), (3, 8.0), (6, 60.0), (1000, 60.0)])
def test_failures_in_a_row_are_nudged_ever_more_slowly(count: int, seconds: float) -> None:
    pod = _nudged(_pod(), _nudge(_event(), _pod()))

    assert _nudge(_event(count), pod) == Later(seconds)


def test_another_event_of_the_same_pod_waits_as_well() -> None:
    pod = _nudged(_pod(), _nudge(_event(), _pod()), ago=1)

    assert _nudge(_event(name="other"), pod) == Later(1.0)


@pytest.mark.parametrize(
    "pod",
    [
        _pod(phase="Running"),
        _pod(phase="Failed"),
        _pod(conditions=[{"type": "PodReadyToStartContainers", "status": "True"}]),
        {**_pod(), "metadata": {**_pod()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {**_pod(), "metadata": {**_pod()["metadata"], "uid": "its successor"}},
        {**_pod(), "spec": {"containers": [], "resourceClaims": []}},
        None,
    ],
    ids=["runs", "ended", "sandbox stands", "going", "another pod", "no claims", "gone"],
)
def test_a_pod_that_does_not_wait_for_us_is_not_nudged(pod: Raw | None) -> None:
    assert _nudge(_event(), pod) is None


def test_claims_of_other_drivers_are_not_our_business() -> None:
    assert _nudge(_event(), _pod(), _claim(driver="other.example.com")) is None


def test_a_claim_that_is_not_reserved_for_the_pod_yet_would_fail_again() -> None:
    claim = _claim()
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": "q", "uid": "uid-q"}]
    assert _nudge(_event(), _pod(), claim) is None
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}
    claim["status"]["reservedFor"] = [group]
    assert isinstance(_nudge(_event(), _pod(), claim), Nudge)


def test_a_claim_that_is_refused_for_good_is_not_tried_again() -> None:
    assert _nudge(_event(), _pod(), _claim(refused=True, on_refusal="Report")) is None
    assert isinstance(_nudge(_event(), _pod(), _claim(refused=True)), Nudge)


def _refused(claim: Raw, *pods: Raw, known: Evictions | None = None) -> tuple[Action, ...]:
    return refused(
        claim,
        [pod_record(pod) for pod in pods],
        (known or Evictions()).by_owner,
        driver=_DRIVER,
        tick=100.0,
        settings=EvictionSettings(),
    )


def test_of_owners_without_end_those_evicted_last_are_remembered() -> None:
    known = Evictions()
    for number in range(20_000):
        known.add(f"owner {number}", float(number))
        known.add("again and again", float(number))
    assert len(known.by_owner) <= 10_000
    assert "owner 19999" in known.by_owner
    assert known.by_owner["again and again"].times == 20_000


def test_a_pod_of_a_refused_claim_is_evicted_with_the_reason() -> None:
    (evict,) = _refused(_claim(refused=True, on_refusal="Evict"), _pod())

    assert isinstance(evict, Evict)
    assert evict.why == "claim refused on node node-0: DeviceLost: it is gone"


@pytest.mark.parametrize(
    "claim", [_claim(), _claim(refused=True), _claim(refused=True, on_refusal="Report")]
)
def test_without_the_wish_nobody_is_evicted(claim: Raw) -> None:
    assert _refused(claim, _pod()) == ()


def test_whoever_runs_with_the_claim_is_left_alone() -> None:
    assert _refused(_claim(refused=True, on_refusal="Evict"), _pod(phase="Running")) == ()


def test_a_bare_pod_is_told_of_and_left() -> None:
    pod = _pod()
    del pod["metadata"]["ownerReferences"]

    (note,) = _refused(_claim(refused=True, on_refusal="Evict"), pod)

    assert isinstance(note, Note)
    assert "no owner" in note.message


def test_pods_of_one_owner_are_evicted_ever_more_slowly() -> None:
    known = Evictions()
    waits = []
    for _ in range(9):
        known.add("job", 100.0)
        (wait,) = _refused(_claim(refused=True, on_refusal="Evict"), _pod(), known=known)
        assert isinstance(wait, WaitUntil)
        waits.append(wait.tick - 100.0)

    assert waits == [10, 20, 40, 80, 160, 320, 640, 1280, 1800]
    assert known.by_owner == {"job": Evicted(9, 100.0)}


def test_two_pods_of_one_owner_are_not_evicted_at_once() -> None:
    other = _pod()
    other["metadata"] |= {"name": "q", "uid": "uid-q"}

    found = _refused(_claim(refused=True, on_refusal="Evict"), _pod(), other)

    assert [type(one) for one in found] == [Evict]
