from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from dragoon.allocator import ClusterState
from dragoon.allocator.gang.model import NodeFacts
from dragoon.allocator.model import PoolId
from dragoon.api.gang import GangObject
from dragoon.api.gang_plan import Plan, PlannedClaim, pack, unpack
from dragoon.gang import asking
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.protocol.model import Member, Ref
from dragoon.gang.records import PodRecord
from tests.unit.gang.records_for_tests import gang, pod

NOW = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)


def allocation(device: str) -> dict[str, Any]:
    result = {"request": "g", "driver": "d", "pool": "p", "device": device}
    return {"devices": {"results": [result]}}


def planned(step: str, *held: Any, members: tuple[str, ...] = ()) -> dict[str, Any]:
    names = [{"pod": name, "uid": f"pod-{name}", "node": "n0"} for name in members]
    plan = {"version": 1, "serial": 1, "step": step, "since": "", "held": list(held)}
    return {"plan": {**plan, "members": names}}


def held_member(name: str, *, slot: str = "", vacated: str = "") -> dict[str, Any]:
    return {"pod": name, "uid": f"pod-{name}", "node": "n0", "slot": slot, "vacated": vacated}


def ask(
    own: GangObject, *pods: PodRecord, others: tuple[GangObject, ...] = (), **request: Any
) -> Any:
    members = [
        Member(Ref("team", one.name, one.uid), gated=True, slot=one.name.partition("-")[2])
        for one in pods
    ]
    scene = asking.Scene(
        own, own.status.plan, {one.uid: one for one in pods}, members, lambda _space, _name: None
    )
    values = {"pods": tuple(one.uid for one in pods)} | request
    return asking.gang_ask(scene, RequestPlan(**values), others=others, now=NOW)


def test_all_that_is_asked_for_is_the_minimum() -> None:
    found = ask(gang(), pod("a"), pod("b"))
    assert [one.name for one in found.members] == ["a", "b"]
    assert (found.minimum, found.name) == (2, "team/g")


def test_members_that_are_placed_are_there_with_their_nodes() -> None:
    own = gang(status=planned("Hold", held_member("a")))
    found = ask(own, pod("a", gated=False, nodeName="n7"), pod("b"), pods=("pod-b",))
    assert [(one.name, one.node) for one in found.members] == [("b", ""), ("a", "n7")]


def test_a_successor_is_tried_first_where_the_dead_member_was() -> None:
    own = gang(status=planned("Hold", held_member("old", slot="3", vacated="2026-11-29T19:59:00Z")))
    (member,) = ask(own, pod("new-3")).members
    assert member.slot is not None
    assert member.slot.node == "n0"


def test_a_node_that_would_not_take_a_successor_is_closed_to_it() -> None:
    avoided = [{"node": "bad", "until": "2026-11-29T20:05:00Z"}]
    own = gang(status={"avoided": avoided})
    before = {"a": "n0", "b": "n1", "c": "bad", "d": "gone"}
    successors = [(pod(name), node) for name, node in before.items()]
    nodes = [NodeFacts("n0"), NodeFacts("n1", unschedulable=True), NodeFacts("bad")]
    assert asking.closed(own, successors, nodes, NOW) == {"pod-b", "pod-c", "pod-d"}


def test_nodes_that_failed_lately_are_left_out() -> None:
    avoided = [
        {"node": "bad", "until": "2026-11-29T20:05:00Z"},
        {"node": "good-again", "until": "2026-11-29T19:59:00Z"},
    ]
    assert ask(gang(status={"avoided": avoided}), pod("a")).excluded == {"bad"}


def test_who_is_to_be_moved_leaves_its_node() -> None:
    own = gang(status=planned("Hold", held_member("a")))
    assert ask(own, pod("a"), spare=True).excluded == {"n0"}
    assert ask(own, pod("a")).excluded == frozenset()


def test_fences_are_no_obstacle_unless_their_gang_waits_for_successors() -> None:
    own, calm = gang("own"), gang("calm", status=planned("Hold", held_member("x")))
    open_ = {
        (one.key, one.operator, one.value)
        for one in ask(own, pod("a"), others=(own, calm)).tolerations
    }
    assert ("dragoon.dev/gang", "Exists", "") in open_
    waits = gang("waits", status=planned("Hold", held_member("x", vacated="2026-11-29T19:59:00Z")))
    found = ask(own, pod("a"), others=(own, calm, waits)).tolerations
    values = {one.value for one in found if one.key == "dragoon.dev/gang"}
    assert values == {"own", "calm"}


def test_what_a_gang_of_the_same_name_keeps_for_its_successors_is_closed_too() -> None:
    """The value of a fence is the gang's name: every namespace may have a gang `train`."""
    own = gang("train")
    held = (held_member("x", vacated="2026-11-29T19:59:00Z"), {**held_member("y"), "node": "n1"})
    elsewhere = replace(gang("train", status=planned("Hold", *held)), namespace="b", uid="other")
    assert ask(own, pod("a"), others=(own, elsewhere)).excluded == {"n0"}
    other_name = replace(elsewhere, name="tune")
    assert ask(own, pod("a"), others=(own, other_name)).excluded == frozenset()
    # Its own slots are open to it.
    mine = gang("train", status=planned("Hold", *held))
    assert ask(mine, pod("a"), others=(mine,)).excluded == frozenset()


def state() -> ClusterState:
    found = ClusterState()
    found.put_slice(
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d",
                "nodeName": "n0",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
            },
        }
    )
    return found


def taken(snapshot: Any) -> set[str]:
    usage = snapshot.usage.get(PoolId("d", "p"))
    return set() if usage is None else set(usage.exclusive)


def journaled(one: GangObject) -> tuple[PlannedClaim, ...]:
    plan = one.status.plan
    return unpack(plan.packed) if plan is not None else ()


def test_c37_what_is_promised_to_one_gang_is_taken_for_the_others() -> None:
    cluster, promises = state(), asking.Promises(journaled)
    one, two = gang("one"), gang("two")
    claim = PlannedClaim(name="c", uid="u", allocation=allocation("gpu-0"))
    promises.keep(one.uid, one.namespace, [claim])
    assert taken(promises.snapshot(cluster, {two.uid}, (one, two))) == {"gpu-0"}
    # Its own promise is no obstacle for a gang that is planned anew.
    assert taken(promises.snapshot(cluster, {one.uid}, (one, two))) == set()
    # What was only assumed for the question is not left in the state.
    assert taken(cluster.snapshot()) == set()
    promises.drop(one.uid)
    assert taken(promises.snapshot(cluster, {two.uid}, (one, two))) == set()


def test_only_what_is_promised_to_a_workload_of_the_namespace_may_be_claimed_by_naming_its_uid() -> (
    None
):
    promises = asking.Promises(journaled)
    promises.keep("of-a-gang", "team", ())
    promises.keep("ours", "team", (), to_workload=True)
    promises.keep("theirs", "other", (), to_workload=True)
    named = ("of-a-gang", "ours", "theirs", "unknown", "")
    assert promises.to_workloads(named, "team") == {"ours"}


def test_a_journaled_plan_is_a_promise_until_it_is_taken_back() -> None:

    cluster, promises = state(), asking.Promises(journaled)
    packed = pack([PlannedClaim(name="c", uid="u", allocation=allocation("gpu-1"))])
    for step, expected in (("Fence", {"gpu-1"}), ("Commit", {"gpu-1"}), ("Release", set[str]())):
        raw = planned(step, members=("a",))
        raw["plan"]["packed"] = packed
        other = gang("other", status=raw)
        own = gang("own")
        assert taken(promises.snapshot(cluster, {own.uid}, (other, own))) == expected


def test_planned_pods_that_their_node_does_not_take_any_more_are_told() -> None:
    plan, pods = two_planned("Wait")
    room = NodeFacts("n0", allocatable={"cpu": 4000}, most_pods=10)
    assert asking.misfits(plan, pods, {"n0": room}) == {}
    tight = NodeFacts("n0", allocatable={"cpu": 3000}, most_pods=10)
    found = asking.misfits(plan, pods, {"n0": tight})
    assert list(found) == ["pod-b"]
    assert "cpu" in found["pod-b"]
    closed = NodeFacts("n0", allocatable={"cpu": 9000}, most_pods=10, unschedulable=True)
    assert set(asking.misfits(plan, pods, {"n0": closed})) == {"pod-a", "pod-b"}


def two_planned(step: str) -> tuple[Plan, dict[str, PodRecord]]:
    """A plan in this step of two pods on one node, with 2 CPU each, and the pods by UID."""
    plan = gang(status=planned(step, members=("a", "b"))).status.plan
    assert plan is not None
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    found = (pod("a", containers=[container]), pod("b", containers=[container]))
    return plan, {one.uid: one for one in found}
