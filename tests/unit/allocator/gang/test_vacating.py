"""Who has to leave for a gang: least priority first, then few pods, and never a guess."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoon.allocator.gang.model import GangPlan, PlacementSnapshot
from dragoon.allocator.gang.vacating import Occupant, left, vacate
from tests.unit.allocator.gang.objects import (
    gang,
    gpus,
    members,
    node,
    planned,
    slices_of,
    snapshot,
    wish,
)
from tests.unit.allocator.objects import holding


def occupant(name: str, node_: str, *claims: str, priority: int = 0, **fields: Any) -> Occupant:
    """One pod on a node, or as many as are said."""
    pods = fields.pop("pods", (f"team-a/{name}",))
    cpu = fields.pop("cpu", 0)
    return Occupant(
        name,
        priority,
        pods,
        tuple(f"team-a/{one}" for one in claims),
        {node_: {"cpu": cpu}},
        {node_: len(pods)},
        **fields,
    )


def full(held: Mapping[str, Sequence[tuple[str, ...]]], **fields: Any) -> PlacementSnapshot:
    """Nodes with four GPUs each; which claims hold which, by node: claim `NODE-INDEX`."""
    claims = [
        holding(*devices, name=f"{name}-{index}", pool=f"{name}/gpu")
        for name, found in held.items()
        for index, devices in enumerate(found)
    ]
    for one in claims:
        one["metadata"]["namespace"] = "team-a"
    used = fields.pop("used", {})
    return snapshot(
        [node(name, used=used.get(name, {}), pods=len(held[name])) for name in held],
        [one for name in held for one in slices_of(name, gpus(*[None] * 4))],
        claims,
    )


ONES = [(f"gpu-{index}",) for index in range(4)]
PAIRS = [("gpu-0", "gpu-1"), ("gpu-2", "gpu-3")]


def names(found: Any) -> list[str]:
    return [one.name for one in found.occupants]


def test_as_few_pods_as_can_be_leave() -> None:
    cluster = full({"a": ONES, "b": PAIRS})
    known = [occupant(f"a{n}", "a", f"a-{n}") for n in range(4)]
    known += [occupant(f"b{n}", "b", f"b-{n}") for n in range(2)]
    found = vacate(cluster, gang(members(1, wish(4))), known)
    assert found is not None
    assert names(found) == ["b0", "b1"]
    assert found.least
    assert {one.node for one in found.plan.placements} == {"b"}


def test_the_least_priority_counts_more_than_the_number_of_pods() -> None:
    cluster = full({"a": ONES, "b": PAIRS})
    known = [occupant(f"a{n}", "a", f"a-{n}") for n in range(4)]
    known += [occupant(f"b{n}", "b", f"b-{n}", priority=5) for n in range(2)]
    found = vacate(cluster, gang(members(1, wish(4))), known)
    assert found is not None
    assert names(found) == ["a0", "a1", "a2", "a3"]
    assert found.priority == 0


def test_a_node_that_is_cheap_as_a_whole_is_chosen_though_one_pod_of_it_holds_little() -> None:
    cluster = full({"a": [("gpu-0",), ("gpu-1", "gpu-2", "gpu-3")], "b": [*PAIRS[:1], *ONES[2:]]})
    known = [occupant(f"a{n}", "a", f"a-{n}") for n in range(2)]
    known += [occupant(f"b{n}", "b", f"b-{n}") for n in range(3)]
    found = vacate(cluster, gang(members(1, wish(4))), known)
    assert found is not None
    assert names(found) == ["a0", "a1"]


def test_nobody_leaves_where_it_fits() -> None:
    found = vacate(full({"a": []}), gang(members(1, wish(4))), [])
    assert found is not None
    assert found.occupants == ()


def test_it_is_none_where_all_are_not_enough() -> None:
    cluster = full({"a": ONES})
    known = [occupant(f"a{n}", "a", f"a-{n}") for n in range(3)]
    assert vacate(cluster, gang(members(1, wish(4))), known) is None


def test_a_gang_leaves_as_a_whole_and_costs_all_its_pods() -> None:
    cluster = full({"a": [("gpu-0", "gpu-1", "gpu-2", "gpu-3")], "b": PAIRS})
    crew = tuple(f"team-a/crew-{n}" for n in range(8))
    known = [occupant("crew", "a", "a-0", pods=crew)]
    known += [occupant(f"b{n}", "b", f"b-{n}") for n in range(2)]
    found = vacate(cluster, gang(members(1, wish(4))), known)
    assert found is not None
    assert names(found) == ["b0", "b1"]


def test_what_leaves_takes_its_cpu_with_it() -> None:
    cluster = full({"a": []}, used={"a": {"cpu": 64_000}})
    hog = occupant("hog", "a", cpu=64_000)
    ask = gang(members(1, wish(1)))
    assert vacate(cluster, ask, []) is None
    found = vacate(cluster, ask, [hog])
    assert found is not None
    assert names(found) == ["hog"]


def test_a_search_that_is_stopped_says_so_and_its_answer_holds() -> None:
    cluster = full({"a": ONES, "b": ONES, "c": ONES})
    known = [occupant(f"{name}{n}", name, f"{name}-{n}") for name in "abc" for n in range(4)]
    ask = gang(members(1, wish(4)))
    found = vacate(cluster, ask, known, tries=4)
    assert found is not None
    assert not found.least
    assert isinstance(planned(left(cluster, found.occupants), ask), GangPlan)


def test_who_ends_first_is_waited_for_where_all_else_is_equal() -> None:
    cluster = full(
        {"a": [("gpu-0", "gpu-1", "gpu-2", "gpu-3")] * 1, "b": [tuple(d for p in PAIRS for d in p)]}
    )
    known = [occupant("a", "a", "a-0", lasting=50.0), occupant("b", "b", "b-0", lasting=20.0)]
    found = vacate(cluster, gang(members(1, wish(4))), known, by_priority=False)
    assert found is not None
    assert names(found) == ["b"]
