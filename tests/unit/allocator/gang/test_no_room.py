"""Why there is no room, whether there ever will be, and what would help."""

from dataclasses import replace
from typing import Any

from dragoon.allocator.gang import NoRoom, Outcome, PlacementSnapshot
from dragoon.allocator.model import Taint
from dragoon.api.gang import Level, Topology
from tests.unit.allocator.gang.objects import (
    GROUP,
    gang,
    gpus,
    member,
    members,
    node,
    planned,
    slices_of,
    snapshot,
    wish,
)
from tests.unit.allocator.objects import DRIVER, Raw, holding

PAIRS = ("a", "a", "b", "b", "c", "c", "d", "d")


def pairs(*held: Raw, **facts: Any) -> PlacementSnapshot:
    """Two nodes of four linked pairs each."""
    slices = [one for name in ("n1", "n2") for one in slices_of(name, gpus(*PAIRS))]
    return snapshot([node("n1"), node("n2", **facts)], slices, held)


def hold(node_name: str, *numbers: int, name: str) -> Raw:
    names = [f"gpu-{number}" for number in numbers]
    return holding(*names, pool=f"{node_name}/gpu", name=name)


def no_room(outcome: Outcome) -> NoRoom:
    assert isinstance(outcome, NoRoom), outcome
    return outcome


BUSY = (hold("n1", 0, 2, 4, 6, name="x"), hold("n2", 0, name="y"))
"""Three whole pairs are left."""


def test_c45_one_reason_says_how_many_fit_and_what_the_next_lacks() -> None:
    found = no_room(planned(pairs(*BUSY), gang(members(4, wish(2), same=GROUP))))
    assert (found.fitting, found.wanted, found.never) == (3, 4, False)
    assert found.message == (
        "3 of 4 members fit; team-a/w3 lacks: on node n1: claim team-a/c3 needs 2 devices with "
        "the same gpu.dragoon.dev/nvlinkDomain, the largest group of the candidates has 1"
    )
    (missing,) = found.missing
    assert missing.members == ("team-a/w3",)
    assert any("held by claim default/x" in line for line in found.explanation)


def test_c45_an_attempt_that_fails_leaves_everything_as_it_was() -> None:
    cluster = pairs(*BUSY)
    before = dict(cluster.cluster.usage)
    ask = gang(members(4, wish(2), same=GROUP))
    first, second = no_room(planned(cluster, ask)), no_room(planned(cluster, ask))
    assert (first.message, first.change) == (second.message, second.change)
    assert cluster.cluster.usage == before
    smaller = gang(members(3, wish(2), same=GROUP))
    assert not isinstance(planned(cluster, smaller), NoRoom)


def test_the_fewest_claims_that_have_to_go() -> None:
    held = [hold("n1", number, name=f"x{number}") for number in range(8)]
    held.append(hold("n2", 0, 2, name="y"))
    found = no_room(planned(pairs(*held), gang(members(3, wish(2), same=GROUP))))
    assert found.change is not None
    assert (found.change.kind, found.change.claims) == ("release", ("default/y",))
    assert found.change.text == "it fits when default/y has let go"


def test_claims_of_low_priority_go_first() -> None:
    held = [hold("n1", 0, 1, name="high"), hold("n1", 2, 3, name="low")]
    cluster = snapshot([node("n1")], slices_of("n1", gpus("a", "a", "b", "b")), held)
    cluster = replace(cluster, priorities={"default/high": 10, "default/low": 1})
    found = no_room(planned(cluster, gang(members(1, wish(2)))))
    assert found.change is not None
    assert found.change.claims == ("default/low",)


def test_a_gang_larger_than_the_cluster_never_fits() -> None:
    found = no_room(planned(pairs(*BUSY), gang(members(9, wish(2), same=GROUP))))
    assert found.never
    assert found.change is not None
    assert (found.change.kind, found.change.text) == ("size", "it fits with size 3")


def test_a_gang_as_large_as_the_cluster_waits() -> None:
    found = no_room(planned(pairs(*BUSY), gang(members(8, wish(2), same=GROUP))))
    assert not found.never
    assert found.change is not None
    assert found.change.claims == ("default/x", "default/y")


def test_a_pool_that_is_being_updated_is_waited_for() -> None:
    slices = slices_of("n1", gpus("a"))
    slices[0]["spec"]["pool"]["resourceSliceCount"] = 2
    found = no_room(planned(snapshot([node("n1")], slices), gang(members(1, wish()))))
    assert not found.never


def test_what_is_not_well_is_waited_for() -> None:
    taint = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
    slices = slices_of("n1", gpus("a", taints=[{"key": "lost", "effect": "NoSchedule"}]))
    found = no_room(
        planned(snapshot([node("n1", taints=(taint,))], slices), gang(members(1, wish())))
    )
    assert not found.never
    other = Taint("team", "b", "NoSchedule")
    theirs = snapshot([node("n1", taints=(other,))], slices)
    assert no_room(planned(theirs, gang(members(1, wish())))).never


def test_a_cordoned_node_that_would_do_is_named() -> None:
    cluster = pairs(*BUSY, unschedulable=True)
    found = no_room(planned(cluster, gang(members(2, wish(2), same=GROUP))))
    assert found.change is not None
    assert found.change.text == "uncordon n2"
    assert "1 node: node taint node.kubernetes.io/unschedulable" in found.explanation


def test_what_a_node_has_too_little_of_is_said() -> None:
    slices = slices_of("n1", gpus(*PAIRS))
    facts = node("n1", cpu=6000, used={"cpu": 3500})
    found = no_room(planned(snapshot([facts], slices), gang(members(4, wish(2)))))
    assert found.message == "2 of 4 members fit; team-a/w2 lacks: 1 node: cpu: 1 wanted, 0.5 left"
    assert found.change is not None
    assert found.change.text == "it fits with more room: node n1: 1.5 more cpu"


def test_a_required_topology_that_is_in_the_way() -> None:
    slices = [one for name in ("n1", "n2") for one in slices_of(name, gpus(*PAIRS))]
    nodes = [node("n1", labels={"rack": "r"}), node("n2", labels={"rack": "s"})]
    ask = gang(members(6, wish(2)), topology=Topology(required=(Level(node_label="rack"),)))
    found = no_room(planned(snapshot(nodes, slices), ask))
    assert found.never
    assert found.fitting == 4
    assert found.change is not None
    assert found.change.text == "it fits where rack is preferred, not required"


def test_more_nodes_where_nothing_else_helps() -> None:
    cluster = snapshot([node("n1")], slices_of("n1", gpus("a", "a")), [hold("n1", 0, 1, name="x")])
    found = no_room(planned(cluster, gang(members(3, wish(2)))))
    assert found.never
    assert found.change is not None
    assert found.change.text == "it fits with 3 more nodes like n1"


def test_nodes_that_no_member_may_be_on_are_counted_by_reason() -> None:
    pod = member("w", node_selector={"zone": "z"})
    found = no_room(planned(pairs(), gang([pod])))
    assert found.message == "0 of 1 members fit; team-a/w lacks: 2 nodes: nodeSelector zone=z"
    assert (found.never, found.change) == (True, None)


def test_nodes_that_are_left_out_are_said_to_be() -> None:
    found = no_room(planned(pairs(), gang(members(1, wish()), excluded=frozenset({"n1", "n2"}))))
    assert found.message.endswith("2 nodes: left out: a member could not be bound there")
    assert not found.never


def test_what_a_node_lacks_is_told_of_its_own_devices_not_of_those_of_one_that_is_alike() -> None:
    text = f"device.attributes['{DRIVER}'].nvlinkDomain == 'another'"
    wanted = wish(1, selectors=[{"cel": {"expression": text}}])
    slices = [*slices_of("n0", gpus("n0-a")), *slices_of("n1", gpus("n1-a"))]
    known = snapshot([node("n0", cpu=500), node("n1")], slices)
    outcome = no_room(planned(known, gang(members(1, wanted))))
    assert "on node n1: " in outcome.message
    assert outcome.message.endswith('nvlinkDomain is "n1-a"')
    assert "1 device on node n1" in "\n".join(outcome.explanation)
