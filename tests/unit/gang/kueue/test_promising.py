"""What promises take of nodes, and whose pods are there."""

from typing import Any

from dragoon.allocator.gang.model import GangPlan, NodeFacts, Placement, PodAsk, Score
from dragoon.api import gang
from dragoon.gang.kueue.deciding import Pods
from dragoon.gang.kueue.promising import PodsOfWorkloads, Rooms
from dragoon.gang.protocol.model import Ref
from dragoon.gang.records import PodRecord, pod_record
from dragoon.kube.mirror import Change, Key

Object = dict[str, Any]


def plan(**nodes: int) -> GangPlan:
    """A plan of pods with one CPU each: how many on each node."""
    places = tuple(
        Placement(PodAsk("team", f"{node}-{index}", f"{node}/{index}", {"cpu": 1000}), node, {})
        for node, count in nodes.items()
        for index in range(count)
    )
    return GangPlan(places, (), (), Score((), 0, 0, 0))


def node(name: str, used: int = 0) -> NodeFacts:
    return NodeFacts(name, allocatable={"cpu": 8000}, used={"cpu": used} if used else {}, pods=1)


def taken(rooms: Rooms, own: str) -> list[tuple[str, int, int]]:
    nodes = rooms.filled([node("n0", 500), node("n1")], own)
    return [(one.name, one.used.get("cpu", 0), one.pods) for one in nodes]


def test_what_is_promised_is_taken_for_others_only() -> None:
    rooms = Rooms()
    rooms.keep("one", plan(n0=2, n1=1))
    rooms.keep("two", plan(n0=1))
    assert taken(rooms, "") == [("n0", 3500, 4), ("n1", 1000, 2)]
    assert taken(rooms, "one") == [("n0", 1500, 2), ("n1", 0, 1)]
    rooms.keep("one", plan(n1=1))
    assert taken(rooms, "two") == [("n0", 500, 1), ("n1", 1000, 2)]
    rooms.drop("one")
    assert ("one" in rooms, "two" in rooms, len(rooms)) == (False, True, 1)


OWN = Ref("team", "train", "w")


def pod(
    name: str, workload: str, *, node: str = "", phase: str = "Pending", space: str = "team"
) -> PodRecord:
    raw: Object = {
        "metadata": {
            "name": name,
            "namespace": space,
            "uid": f"uid-{name}",
            "annotations": {gang.ANNOTATION_WORKLOAD: workload} if workload else {},
        },
        "spec": {"resourceClaims": [{"name": "gpu"}], **({"nodeName": node} if node else {})},
        "status": {"phase": phase},
    }
    return pod_record(raw)


def test_the_pods_of_a_workload_are_those_that_say_so() -> None:
    told: list[str] = []
    pods = PodsOfWorkloads(lambda one: bool(one.node))
    pods.changed = told.append

    def see(old: PodRecord | None, new: PodRecord | None) -> None:
        known = new or old
        assert known is not None
        pods.see(Change(Key(*known.key), old, new))

    see(None, pod("a", "w"))
    see(None, pod("b", "w"))
    see(None, pod("stranger", ""))
    see(None, pod("thief", "w", node="n0", space="other"))
    assert pods.of(OWN) == Pods(2, 0)
    see(pod("a", "w"), pod("a", "w", node="n0"))
    assert pods.of(OWN) == Pods(2, 1)
    # One that has ended had its devices, and is not alive.
    see(pod("b", "w"), pod("b", "w", node="n0", phase="Succeeded"))
    assert pods.of(OWN) == Pods(1, 2)
    see(pod("a", "w", node="n0"), None)
    see(pod("b", "w", node="n0", phase="Succeeded"), None)
    assert pods.of(OWN) == Pods(0, 0)
    assert set(told) == {"w"}
