"""Gangs whose members have to agree on something, or had better."""

from dataclasses import replace

from dragoon.allocator.gang import GangPlan, NoRoom, PlacementSnapshot, SearchStopped
from dragoon.api.gang import Level, Topology
from tests.unit.allocator.gang.objects import (
    CLIQUE,
    GROUP,
    devices_of,
    gang,
    gpus,
    member,
    members,
    node,
    planned,
    slices_of,
    snapshot,
    where,
    wish,
)
from tests.unit.allocator.objects import DRIVER, Raw, device

RACK = Level(node_label="rack")


class TestTopology:
    def racks(self, *held: Raw) -> PlacementSnapshot:
        labels = {"n1": "r", "n2": "s", "n3": "s", "n4": ""}
        nodes = [node(name, labels={"rack": rack} if rack else {}) for name, rack in labels.items()]
        slices = [
            one
            for name in labels
            for one in slices_of(name, gpus("a", "a", fabricClique="p" if name < "n3" else "q"))
        ]
        return snapshot(nodes, slices, held)

    def test_required_means_one_value_and_nodes_without_the_label_are_out(self) -> None:
        topology = Topology(required=(RACK,))
        found = planned(self.racks(), gang(members(2, wish(2)), topology=topology))
        assert set(where(found).values()) == {"n2", "n3"}
        assert isinstance(found, GangPlan)
        assert found.domain == ("s",)
        too_many = planned(self.racks(), gang(members(3, wish(2)), topology=topology))
        assert isinstance(too_many, NoRoom)

    def test_preferred_gives_way(self) -> None:
        topology = Topology(preferred=(RACK,))
        two = planned(self.racks(), gang(members(2, wish(2)), topology=topology))
        assert set(where(two).values()) == {"n2", "n3"}
        four = planned(self.racks(), gang(members(4, wish(2)), topology=topology))
        assert isinstance(four, GangPlan)
        assert four.score.spread == (2,)

    def test_required_values_of_devices(self) -> None:
        topology = Topology(required=(Level(attribute=CLIQUE),))
        found = planned(self.racks(), gang(members(2, wish(2)), topology=topology))
        assert set(where(found).values()) in ({"n1", "n2"}, {"n3", "n4"})
        assert isinstance(
            planned(self.racks(), gang(members(3, wish(2)), topology=topology)), NoRoom
        )

    def test_devices_of_one_node_may_have_several_values(self) -> None:
        cluster = snapshot([node("n1")], slices_of("n1", gpus("a", "b", "b", "a", "b")))
        topology = Topology(required=(Level(attribute=GROUP),))
        found = planned(cluster, gang(members(3, wish()), topology=topology))
        assert sorted(one for (one,) in devices_of(found).values()) == [
            "n1/gpu-1",
            "n1/gpu-2",
            "n1/gpu-4",
        ]

    def test_members_without_such_devices_may_be_anywhere(self) -> None:
        topology = Topology(required=(Level(attribute=CLIQUE),))
        cluster = snapshot(
            [node("n0"), node("n1", cpu=1000)],
            slices_of("n1", gpus("a", fabricClique="p")),
        )
        pods = [member("master"), *members(1, wish())]
        assert where(planned(cluster, gang(pods, topology=topology))) == {
            "master": "n0",
            "w0": "n1",
        }

    def test_placed_members_decide_for_those_that_come_after(self) -> None:
        topology = Topology(required=(RACK,))
        placed = replace(member("old"), node="n2")
        found = planned(self.racks(), gang([placed, *members(1, wish(2))], topology=topology))
        assert where(found) == {"w0": "n2"}
        split = [placed, replace(member("other"), node="n1"), *members(1, wish(2))]
        assert isinstance(planned(self.racks(), gang(split, topology=topology)), NoRoom)


def test_levels_with_a_value_for_each_card_end_the_search_instead_of_the_planner() -> None:
    """Users choose levels: the parts are as many as the values of one times those of the other."""
    names = [f"n{number:03d}" for number in range(100)]
    slices = [
        one
        for name in names
        for one in slices_of(
            name, [device(f"gpu-{card}", uuid=f"{name}-{card}", host=name) for card in range(8)]
        )
    ]
    levels = (Level(attribute=f"{DRIVER}/uuid"), Level(attribute=f"{DRIVER}/host"))
    outcome = planned(
        snapshot(map(node, names), slices),
        gang([member("a"), member("b")], topology=Topology(required=levels)),
    )
    assert isinstance(outcome, SearchStopped)
    assert outcome.message.endswith("levels of its topology have more values than are looked at")
