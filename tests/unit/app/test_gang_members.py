"""Members of Gangs in a snapshot: as the controller sorts them, also where labels are the same."""

from typing import Any

from dragoon.api.gang import LABEL
from dragoon.app.gang_members import with_members
from dragoon.diagnose.explaining import explain_gang
from dragoon.diagnose.snapshot import ClusterSnapshot

Object = dict[str, Any]


def gang(name: str, **spec: Any) -> Object:
    meta = {"name": name, "namespace": "team", "uid": f"gang-{name}", "labels": {LABEL: "g"}}
    return {"kind": "Gang", "metadata": meta, "spec": {"size": 2, **spec}}


def pod(name: str, *, labels: dict[str, str] | None = None, job: str = "") -> Object:
    meta: Object = {"name": name, "namespace": "team", "uid": f"pod-{name}"}
    meta["labels"] = {LABEL: "g", **(labels or {})}
    if job:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"job-{job}"}
        meta["ownerReferences"] = [{**owner, "controller": True}]
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": []}}


def replica(name: str, index: int) -> Object:
    return pod(
        name,
        labels={
            "leaderworkerset.sigs.k8s.io/name": "llm",
            "leaderworkerset.sigs.k8s.io/group-index": str(index),
        },
    )


def of_group(index: int) -> Object:
    return {"source": {"name": "LeaderWorkerSet", "group": f"llm/{index}"}}


def owned(job: str) -> Object:
    return {"owner": {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"job-{job}"}}


def test_pods_with_one_label_are_of_the_gang_of_their_group_or_of_their_job() -> None:
    found = with_members(
        ClusterSnapshot.of(
            [
                gang("a", **of_group(0)),
                gang("b", **of_group(1)),
                gang("c", **owned("j")),
                *(replica(f"a{index}", 0) for index in range(2)),
                replica("b0", 1),
                pod("c0", job="j"),
            ]
        )
    )
    assert found.members == {
        ("team", "a"): frozenset(("a0", "a1")),
        ("team", "b"): frozenset(("b0",)),
        ("team", "c"): frozenset(("c0",)),
    }


def test_explain_counts_the_members_of_the_gang_that_is_asked_about() -> None:
    objects = [gang("a", **of_group(0)), gang("b", **of_group(1))]
    objects += [replica("a0", 0), replica("b0", 1), replica("b1", 1)]
    found = with_members(ClusterSnapshot.of(objects))
    assert explain_gang(found, "team", "a").message == "1 of 2 members are there"
    assert "are there" not in explain_gang(found, "team", "b").message


def test_what_cannot_be_read_is_left_out() -> None:
    broken = {"kind": "Pod", "metadata": {"name": ["x"]}, "spec": "none"}
    odd = {"kind": "Gang", "metadata": {"name": "odd", "namespace": "team"}, "spec": {"size": "x"}}
    found = with_members(ClusterSnapshot.of([broken, odd, gang("a"), pod("p")]))
    assert found.members == {("team", "a"): frozenset(("p",))}
