"""The verifier finds what is wrong with a plan, whatever it is."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dragoon.allocator.gang import GangAsk, GangPlan, Placement, PlacementSnapshot
from dragoon.allocator.gang.verifying import verify_plan
from dragoon.allocator.model import Taint
from dragoon.api.gang import Level, Topology
from tests.unit.allocator.gang.objects import (
    GROUP,
    claim,
    counter_set,
    devices_of,
    gang,
    gpus,
    member,
    members,
    node,
    partitioned,
    planned,
    slices_of,
    snapshot,
    wish,
)
from tests.unit.allocator.objects import holding

RACKS = Topology(required=(Level(node_label="rack"),))


def scene() -> tuple[PlacementSnapshot, GangAsk, GangPlan]:
    """Two members on n1, with two linked GPUs each; n2 would do as well."""
    nodes = [node(name, labels={"rack": name}) for name in ("n1", "n2")]
    slices = [one for name in ("n1", "n2") for one in slices_of(name, gpus("a", "a", "b", "b"))]
    cluster = snapshot(nodes, slices)
    ask = gang(members(2, wish(2), same=GROUP), topology=RACKS)
    found = planned(cluster, ask)
    assert isinstance(found, GangPlan)
    assert set(devices_of(found)["w0"]) == {"n1/gpu-0", "n1/gpu-1"}
    return cluster, ask, found


def with_first(plan: GangPlan, change: Callable[[Placement], Placement]) -> GangPlan:
    first, *rest = plan.placements
    return replace(plan, placements=(change(first), *rest))


def with_device(plan: GangPlan, name: str) -> GangPlan:
    """The first member has another device in place of its first one."""

    def change(one: Placement) -> Placement:
        allocations: dict[str, Any] = copy.deepcopy(dict(one.allocations))
        next(iter(allocations.values()))["devices"]["results"][0]["device"] = name
        return replace(one, allocations=allocations)

    return with_first(plan, change)


def test_a_right_plan_breaks_no_rule() -> None:
    assert not verify_plan(*scene())


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gpu-2", "device gpu.dragoon.dev/n1/gpu/gpu-2 is given twice"),
        ("gpu-9", "device gpu.dragoon.dev/n1/gpu/gpu-9 is in no slice of a usable pool"),
    ],
)
def test_devices(name: str, problem: str) -> None:
    cluster, ask, plan = scene()
    assert f"node n1: {problem}" in verify_plan(cluster, ask, with_device(plan, name))


def test_a_constraint_that_does_not_hold() -> None:
    cluster, ask, plan = scene()
    alone = replace(ask, members=ask.members[:1], minimum=1)
    first = replace(plan, placements=plan.placements[:1])
    (problem,) = verify_plan(cluster, alone, with_device(first, "gpu-2"))
    assert problem.startswith("node n1: gpu.dragoon.dev/nvlinkDomain is not the same")


def test_a_device_that_somebody_holds() -> None:
    cluster, ask, plan = scene()
    slices = [one for name in ("n1", "n2") for one in slices_of(name, gpus("a", "a", "b", "b"))]
    held = snapshot(cluster.nodes, slices, [holding("gpu-1", pool="n1/gpu", name="x")])
    (problem,) = verify_plan(held, ask, plan)
    assert problem.endswith("gpu-1 is given twice: another claim has it")


def test_counters_that_do_not_suffice() -> None:
    cluster = snapshot([node("n1")], slices_of("n1", partitioned(0), [counter_set(0)]))
    ask = gang(members(2, wish(class_name="mig")))
    plan = planned(cluster, ask)
    assert isinstance(plan, GangPlan)
    problems = verify_plan(cluster, ask, with_device(plan, "card-0"))
    assert any("counter part-1 of card-0" in one for one in problems)


def test_a_member_that_is_missing_or_there_twice() -> None:
    cluster, ask, plan = scene()
    missing = verify_plan(cluster, ask, replace(plan, placements=plan.placements[:1]))
    assert missing[:2] == [
        "1 members of 2 have a place",
        "member pod-w1 is neither placed nor left out",
    ]
    twice = replace(plan, placements=(*plan.placements, plan.placements[0]))
    assert "member pod-w0 is placed 2 times, or is none" in verify_plan(cluster, ask, twice)


def test_more_members_than_the_largest_size() -> None:
    cluster, ask, plan = scene()
    small = replace(ask, minimum=1, maximum=1)
    assert verify_plan(cluster, small, plan) == ["2 members have a place, allowed are 1"]


def test_a_member_that_is_placed_and_left_out() -> None:
    cluster, ask, plan = scene()
    assert verify_plan(cluster, ask, replace(plan, left_out=("pod-w1",))) == [
        "member pod-w1 is placed and left out"
    ]


def test_a_claim_without_an_allocation() -> None:
    cluster, ask, plan = scene()
    bare = with_first(plan, lambda one: replace(one, allocations={}))
    assert "claim uid-c0 is allocated 0 times" in verify_plan(cluster, ask, bare)


def test_an_allocation_of_another_node() -> None:
    cluster, ask, plan = scene()
    moved = with_first(plan, lambda one: replace(one, node="n2"))
    assert "claim uid-c0 cannot be used on node n2" in verify_plan(cluster, ask, moved)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"taints": (Taint("k", "", "NoSchedule"),)}, "taint k:NoSchedule of node n1"),
        ({"unschedulable": True}, "node n1 is cordoned"),
        ({"labels": {"rack": "other"}}, "does not match its nodeSelector"),
        ({"used": {"cpu": 62_001}}, "node n1: cpu 62001 + 2000 of 64000"),
        ({"pods": 109}, "node n1: 109 + 2 pods, allowed are 110"),
    ],
)
def test_nodes(changes: dict[str, Any], problem: str) -> None:
    cluster, ask, plan = scene()
    nodes = tuple(replace(one, **changes) if one.name == "n1" else one for one in cluster.nodes)
    choosy = [replace(one, node_selector={"rack": "n1"}) for one in ask.members]
    by_uid = {one.uid: one for one in choosy}
    placed = tuple(replace(one, pod=by_uid[one.pod.uid]) for one in plan.placements)
    problems = verify_plan(
        replace(cluster, nodes=nodes),
        replace(ask, members=tuple(choosy)),
        replace(plan, placements=placed),
    )
    assert any(problem in one for one in problems)


def test_a_node_that_is_excluded_or_gone() -> None:
    cluster, ask, plan = scene()
    excluded = replace(ask, excluded=frozenset({"n1"}))
    assert "node n1 is not there or excluded" in verify_plan(cluster, excluded, plan)
    gone = replace(cluster, nodes=cluster.nodes[1:])
    assert "node n1 is not there or excluded" in verify_plan(gone, ask, plan)


def test_members_with_different_values_of_a_required_level() -> None:
    cluster, ask, plan = scene()
    apart = replace(ask, members=(*ask.members, replace(member("old"), node="n2")))
    (problem,) = verify_plan(cluster, apart, plan)
    assert problem == "rack is not the same for all members: ['n1', 'n2']"


def test_devices_with_different_values_of_a_required_level() -> None:
    cluster, ask, plan = scene()
    linked = replace(ask, topology=Topology(required=(Level(attribute=GROUP),)))
    (problem,) = verify_plan(cluster, linked, plan)
    assert problem == "gpu.dragoon.dev/nvlinkDomain is not the same for all members: ['a', 'b']"


def test_a_shared_claim_holds_its_members_to_its_node() -> None:
    cluster, _, _ = scene()
    shared = claim("s", wish())
    ask = gang([member("a", shared), member("b", shared)])
    plan = planned(cluster, ask)
    assert isinstance(plan, GangPlan)
    second = replace(plan.placements[1], node="n2")
    apart = replace(plan, placements=(plan.placements[0], second))
    assert "claim uid-s cannot be used on node n2" in verify_plan(cluster, ask, apart)
