"""Where gangs go: the cases, and what is best among what is right."""

from collections import Counter
from itertools import permutations

import pytest

from dragoon.allocator import ClusterState
from dragoon.allocator.gang import GangPlan, NoRoom, PlacementSnapshot, SearchStopped
from dragoon.allocator.gang.model import Budget
from dragoon.allocator.gang.planning import plan
from tests.unit.allocator.gang.objects import (
    GROUP,
    NIC_DRIVER,
    PAIRS,
    WHOLE,
    busy,
    claim,
    counter_set,
    devices_of,
    either,
    gang,
    gpus,
    member,
    members,
    node,
    partitioned,
    planned,
    slices_of,
    snapshot,
    two_nodes_of_pairs,
    where,
    wish,
)
from tests.unit.allocator.objects import DRIVER, Raw, device, holding, slice_of

LARGE: Raw = {"capacity": {"memory": {"value": "80Gi"}}}


SMALL: Raw = {"capacity": {"memory": {"value": "16Gi"}}}


LARGE_ONLY = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('79Gi')) >= 0"


def large() -> Raw:
    return wish(selectors=[{"cel": {"expression": LARGE_ONLY}}])


def test_c37_each_plan_sees_what_was_decided_before_it() -> None:
    """Seven gangs of one, five devices: five are placed on different devices, two are not."""
    state = ClusterState()
    state.put_class(WHOLE)
    for raw in slices_of("n1", gpus(*"abcde")):
        state.put_slice(raw)
    taken: list[str] = []
    refused = 0
    for index in range(7):
        wanted = claim(f"c{index}", wish())
        cluster = PlacementSnapshot(state.snapshot(), (node("n1"),))
        found = planned(cluster, gang([member(f"w{index}", wanted)]))
        if isinstance(found, GangPlan):
            state.assume(wanted, found.placements[0].allocations[f"uid-c{index}"])
            taken += devices_of(found)[f"w{index}"]
        else:
            refused += 1
    assert (len(taken), len(set(taken)), refused) == (5, 5, 2)


class TestC44:
    """Gang placed greedily: it never ran although a placement exists."""

    def test_c44_the_master_leaves_the_large_cards_to_the_workers(self) -> None:
        cluster = snapshot(
            [node("n1")],
            slices_of("n1", [*gpus(None, None, None, **LARGE), *gpus(None, start=3, **SMALL)]),
        )
        master, *workers = member("master", claim("m", wish())), *members(3, large())
        for order in permutations((master, *workers)):
            found = planned(cluster, gang(order))
            assert devices_of(found)["master"] == ["n1/gpu-3"]

    def test_c44_the_same_over_nodes_of_one_card_each(self) -> None:
        cards = {"n1": LARGE, "n2": LARGE, "n3": SMALL, "n4": LARGE}
        slices = [
            one for name, card in cards.items() for one in slices_of(name, gpus(None, **card))
        ]
        cluster = snapshot([node(name) for name in cards], slices)
        master, *workers = member("master", claim("m", wish())), *members(3, large())
        for order in permutations((master, *workers)):
            assert where(planned(cluster, gang(order)))["master"] == "n3"

    def test_c44_four_of_seven_linked_pairs_and_none_is_split(self) -> None:
        found = planned(two_nodes_of_pairs(*busy(1, "n1")), gang(members(4, wish(2), same=GROUP)))
        assert set(where(found).values()) == {"n2"}
        for pair in devices_of(found).values():
            first, second = (int(one.rpartition("-")[2]) for one in pair)
            assert (first % 2, second) == (0, first + 1)

    def test_c44_alternatives_are_chosen_together_as_in_kubernetes_138765(self) -> None:
        cluster = snapshot([node("n1")], slices_of("n1", partitioned(0), [counter_set(0)]))
        found = planned(cluster, gang(members(2, either(("whole", 1), ("mig", 1)))))
        assert devices_of(found) == {"w0": ["n1/card-0-mig-0"], "w1": ["n1/card-0-mig-1"]}
        alone = planned(cluster, gang(members(1, either(("whole", 1), ("mig", 1)))))
        assert devices_of(alone) == {"w0": ["n1/card-0"]}

    def test_c44_alternatives_of_many_members_fit_where_only_the_last_do(self) -> None:
        cards = [one for index in range(4) for one in partitioned(index, 7)]
        cluster = snapshot(
            [node("n1")], slices_of("n1", cards, [counter_set(index, 7) for index in range(4)])
        )
        wishes = either(("whole", 1), ("mig", 1))
        assert isinstance(planned(cluster, gang(members(28, wishes))), GangPlan)
        assert not isinstance(planned(cluster, gang(members(29, wishes))), GangPlan)

    def test_c44_a_search_that_stops_does_not_say_impossible(self) -> None:
        cluster = two_nodes_of_pairs()
        found = plan(cluster, gang(members(4, wish(2), same=GROUP)), Budget(steps=3))
        assert isinstance(found, SearchStopped)

    def test_c44_all_devices_of_a_node_for_both_pods_of_a_replica(self) -> None:
        everything = wish(allocationMode="All")
        del everything["exactly"]["count"]
        slices = [*slices_of("n1", gpus("a", "a")), *slices_of("n2", gpus("b", "b"))]
        cluster = snapshot([node("n0"), node("n1"), node("n2")], slices)
        assert devices_of(planned(cluster, gang(members(2, everything)))) == {
            "w0": ["n1/gpu-0", "n1/gpu-1"],
            "w1": ["n2/gpu-0", "n2/gpu-1"],
        }
        taken = snapshot(
            [node("n1"), node("n2")], slices, [holding("gpu-0", pool="n2/gpu", name="x")]
        )
        assert isinstance(planned(taken, gang(members(2, everything))), NoRoom)


class TestC46:
    """A claim that members share."""

    def test_c46_is_allocated_once_and_holds_its_members_together(self) -> None:
        shared = claim("channel", wish())
        found = planned(
            two_nodes_of_pairs(*busy(3, "n1")),
            gang([member("a", shared), member("b", shared), member("c", claim("own", wish()))]),
        )
        assert isinstance(found, GangPlan)
        places = where(found)
        assert places["a"] == places["b"]
        assert [len(one.allocations) for one in found.placements if one.pod.name in "ab"] == [1, 0]

    def test_c46_needs_a_node_that_has_room_for_all_of_them(self) -> None:
        shared = claim("channel", wish())
        nodes = [node("n1", cpu=1000), node("n2", cpu=2000)]
        slices = [*slices_of("n1", gpus("a")), *slices_of("n2", gpus("b"))]
        pods = [member("a", shared), member("b", shared)]
        assert where(planned(snapshot(nodes, slices), gang(pods))) == {"a": "n2", "b": "n2"}
        assert isinstance(planned(snapshot(nodes[:1], slices), gang(pods)), NoRoom)

    def test_c46_of_a_device_that_several_nodes_offer_does_not(self) -> None:
        network = slice_of(device("x"), pool="net", name="net", driver=NIC_DRIVER, allNodes=True)
        slices = [*slices_of("n1", gpus(None)), *slices_of("n2", gpus(None)), network]
        shared = claim("channel", wish(class_name="nic"))
        pods = [member(f"w{i}", claim(f"c{i}", wish()), shared) for i in range(2)]
        found = planned(snapshot([node("n1"), node("n2")], slices), gang(pods))
        assert isinstance(found, GangPlan)
        assert where(found) == {"w0": "n1", "w1": "n2"}
        first = found.placements[0].allocations
        assert "nodeSelector" not in first["uid-channel"]
        assert first["uid-c0"]["nodeSelector"] == {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        }

    def test_c46_allocated_by_another_pod_already_decides_the_node(self) -> None:
        held = holding("gpu-0", pool="n2/gpu", name="x")
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
        held["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
        found = planned(two_nodes_of_pairs(held), gang([member("a", held, claim("c", wish()))]))
        assert where(found) == {"a": "n2"}


class TestBest:
    """Among right placements the one that leaves most."""

    def test_as_few_nodes_as_will_do(self) -> None:
        found = planned(two_nodes_of_pairs(*busy(2, "n1")), gang(members(8, wish())))
        assert set(where(found).values()) == {"n2"}

    def test_the_node_on_which_least_is_left_over(self) -> None:
        found = planned(two_nodes_of_pairs(*busy(2, "n2")), gang(members(4, wish())))
        assert set(where(found).values()) == {"n2"}

    def test_one_nvlink_domain_where_one_has_enough_and_the_smallest_that_has(self) -> None:
        groups = ("a", "a", "a", "a", "b", "b", "c", "c", "c")
        cluster = snapshot([node("n1")], slices_of("n1", gpus(*groups)))
        by_count = {
            2: ["n1/gpu-4", "n1/gpu-5"],
            3: ["n1/gpu-6", "n1/gpu-7", "n1/gpu-8"],
            4: ["n1/gpu-0", "n1/gpu-1", "n1/gpu-2", "n1/gpu-3"],
        }
        for amount, expected in by_count.items():
            assert devices_of(planned(cluster, gang(members(1, wish(amount))))) == {"w0": expected}

    def test_members_of_one_gpu_fill_a_domain_before_they_break_another(self) -> None:
        cluster = snapshot([node("n1")], slices_of("n1", gpus("a", "a", "a", "a", "b", "b")))
        found = planned(cluster, gang(members(2, wish())))
        assert devices_of(found) == {"w0": ["n1/gpu-4"], "w1": ["n1/gpu-5"]}
        assert isinstance(found, GangPlan)
        assert (found.score.domains, found.score.broken) == (1, 1)

    def test_parts_of_a_card_that_is_in_use_come_first(self) -> None:
        cards = [one for index in range(3) for one in partitioned(index, 4)]
        sets = [counter_set(index, 4) for index in range(3)]
        held = holding("card-1-mig-0", pool="n1/gpu", name="x")
        cluster = snapshot([node("n1")], slices_of("n1", cards, sets), [held])
        found = planned(cluster, gang(members(3, wish(class_name="mig"))))
        assert {one.rpartition("-mig-")[0] for (one,) in devices_of(found).values()} == {
            "n1/card-1"
        }

    def test_a_small_part_is_taken_where_it_hurts_no_large_one(self) -> None:
        def part(name: str, *slots: int) -> Raw:
            counters = {f"slot-{one}": {"value": "1"} for one in slots}
            uses = [{"counterSet": "card", "counters": counters}]
            return device(name, type="mig", profile=f"{len(slots)}g", consumesCounters=uses)

        sizes = [part("half-0", 0, 1), part("half-2", 2, 3)]
        sizes += [part(f"one-{slot}", slot) for slot in range(4)]
        counters = {f"slot-{slot}": {"value": "1"} for slot in range(4)}
        cluster = snapshot(
            [node("n1")],
            slices_of("n1", sizes, [{"name": "card", "counters": counters}]),
            [holding("one-3", pool="n1/gpu", name="x")],
        )
        text = f"device.attributes['{DRIVER}'].profile == '1g'"
        small = wish(class_name="mig", selectors=[{"cel": {"expression": text}}])
        assert devices_of(planned(cluster, gang(members(1, small)))) == {"w0": ["n1/one-2"]}

    def test_shares_go_to_the_card_that_has_least_left(self) -> None:
        def share(index: int) -> Raw:
            return device(
                f"card-{index}-shared",
                type="shared",
                allowMultipleAllocations=True,
                capacity={
                    "memory": {
                        "value": "80Gi",
                        "requestPolicy": {"default": "80Gi", "validRange": {"min": "1Gi"}},
                    }
                },
            )

        held = holding(
            "card-2-shared",
            pool="n1/gpu",
            name="x",
            shareID="00000000-0000-4000-8000-00000000000f",
            consumedCapacity={"memory": "30Gi"},
        )
        cluster = snapshot([node("n1")], slices_of("n1", [share(i) for i in range(3)]), [held])
        some = wish(class_name="shared", capacity={"requests": {"memory": "25Gi"}})
        found = planned(cluster, gang(members(3, some)))
        assert Counter(one for (one,) in devices_of(found).values()) == {
            "n1/card-2-shared": 2,
            "n1/card-0-shared": 1,
        }

    def test_one_fabric_clique_where_that_needs_no_more_nodes(self) -> None:
        cliques = {"n1": "p", "n2": "q", "n3": "p", "n4": "q", "n5": "q"}
        slices = [
            one
            for name, clique in cliques.items()
            for one in slices_of(name, gpus(f"{name}-a", f"{name}-a", fabricClique=clique))
        ]
        cluster = snapshot([node(name) for name in cliques], slices)
        assert set(where(planned(cluster, gang(members(3, wish(2))))).values()) == {
            "n2",
            "n4",
            "n5",
        }
        assert set(where(planned(cluster, gang(members(2, wish(2))))).values()) == {"n1", "n3"}

    def test_neighbours_in_the_gang_are_neighbours_on_the_nodes(self) -> None:
        found = planned(two_nodes_of_pairs(), gang(members(16, wish())))
        assert list(where(found).values()) == ["n1"] * 8 + ["n2"] * 8


@pytest.mark.parametrize("read", ["has({}.nvlinkDomain)", "{}.host != 'x'", "size({}) > 1"])
def test_a_selector_that_reads_what_every_node_has_of_its_own_makes_no_plan_longer(
    read: str,
) -> None:
    text = read.format(f"device.attributes['{DRIVER}']")
    names = [f"n{number}" for number in range(20)]
    slices = [
        one
        for name in names
        for one in slices_of(name, gpus(*(f"{name}-{pair}" for pair in PAIRS), host=name))
    ]
    known = snapshot(map(node, names), slices)
    plain, reading = (
        planned(known, gang(members(40, wish(2, selectors=asked))))
        for asked in ([], [{"cel": {"expression": text}}])
    )
    assert isinstance(plain, GangPlan)
    assert isinstance(reading, GangPlan)
    assert 0 < reading.steps == plain.steps
