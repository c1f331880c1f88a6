"""Pods that were bound past kube-scheduler and got no devices (case C48)."""

from typing import Any

from dragoon.gang.records import pod_record
from dragoon.gang.stranded import is_stranded, stranded

Raw = dict[str, Any]


def _pod(*, label: bool = False, scheduler: str = "", **more: Any) -> Raw:
    meta: Raw = {"name": "p", "namespace": "team", "uid": "uid-p", "resourceVersion": "5"}
    if label:
        meta["labels"] = {"dragoon.dev/gang": "g"}
    entry = {"name": "gpu", "resourceClaimName": "c"}
    spec: Raw = {"nodeName": "node-0", "containers": [], "resourceClaims": [entry], **more}
    if scheduler:
        spec["schedulerName"] = scheduler
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def _claim(*classes: str, allocated: bool = False) -> Raw:
    wishes = [{"name": name, "deviceClassName": name} for name in classes]
    requests = [{"name": "gpu", "firstAvailable": wishes}]
    if len(wishes) == 1:
        requests = [{"name": "gpu", "exactly": {"deviceClassName": classes[0]}}]  # type: ignore[dict-item]
    status: Raw = {"allocation": {"devices": {"results": []}}} if allocated else {}
    meta = {"name": "c", "namespace": "team", "uid": "uid-c"}
    return {"metadata": meta, "spec": {"devices": {"requests": requests}}, "status": status}


def _told(pod: Raw, claim: Raw | None) -> str:
    note = stranded(pod_record(pod), lambda *_: claim, lambda name: name == "ours")
    return "" if note is None else note.message


def test_c48_a_pinned_pod_without_devices_is_told_why_and_what_to_do() -> None:
    told = _told(_pod(), _claim("ours"))
    assert told.startswith("spec.nodeName put the pod on node node-0, past kube-scheduler")
    for words in ("claim c has no devices", "dragoon.dev/gang", 'dragoon.dev/gang-size: "1"'):
        assert words in told


def test_c48_another_scheduler_is_named() -> None:
    assert _told(_pod(scheduler="yunikorn"), _claim("theirs", "ours")).startswith("yunikorn put")


def test_nothing_is_told_where_somebody_helps_or_it_is_not_about_us() -> None:
    waiting = _claim("ours")
    assert not _told(_pod(label=True), waiting)
    assert not _told(_pod(nodeName=""), waiting)
    assert not _told({**_pod(), "status": {"phase": "Failed"}}, waiting)
    assert not _told(_pod(), _claim("ours", allocated=True))
    assert not _told(_pod(), _claim("theirs"))
    assert not _told(_pod(), None)


def test_a_bound_member_without_devices_is_stranded_and_a_gated_one_is_not() -> None:
    assert is_stranded(pod_record(_pod(label=True)), lambda *_: _claim("ours"))
    assert not is_stranded(pod_record(_pod(label=True, nodeName="")), lambda *_: _claim("ours"))
