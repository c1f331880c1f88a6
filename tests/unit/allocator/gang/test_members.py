"""What members ask for, hold already or tolerate, and gangs that are refused."""

from collections import Counter
from dataclasses import replace

import pytest

from dragoon.allocator.gang import GangPlan, NoRoom, Refused, Slot
from dragoon.allocator.model import DeviceId, Toleration
from tests.unit.allocator.gang.objects import (
    NIC_DRIVER,
    busy,
    claim,
    devices_of,
    gang,
    gpus,
    member,
    members,
    node,
    planned,
    slices_of,
    snapshot,
    two_nodes_of_pairs,
    where,
    wish,
)
from tests.unit.allocator.objects import DRIVER, Raw, device, holding, slice_of


class TestMembers:
    def test_members_beyond_the_minimum_come_one_by_one(self) -> None:
        found = planned(two_nodes_of_pairs(*busy(3, "n1")), gang(members(12, wish()), 4))
        assert isinstance(found, GangPlan)
        assert len(found.placements) == 10
        assert found.left_out == ("pod-w10", "pod-w11")

    def test_no_more_than_the_largest_size(self) -> None:
        found = planned(two_nodes_of_pairs(), gang(members(12, wish()), 4, maximum=5))
        assert isinstance(found, GangPlan)
        assert [one.pod.name for one in found.placements] == [f"w{i}" for i in range(5)]
        assert len(found.left_out) == 7

    def test_placed_members_count_and_do_not_move(self) -> None:
        placed = [replace(member(f"old{i}"), node="n1") for i in range(2)]
        new = [
            replace(one, name=f"new{i}", uid=f"new{i}") for i, one in enumerate(members(2, wish()))
        ]
        found = planned(two_nodes_of_pairs(), gang([*placed, *new], 4))
        assert where(found) == {"new0": "n1", "new1": "n1"}

    def test_a_replacement_gets_the_place_and_the_devices_of_the_dead_one(self) -> None:
        slot = Slot("n2", (DeviceId(DRIVER, "n2/gpu", "gpu-5"),))
        held = [holding(f"gpu-{i}", pool="n1/gpu", name=f"h{i}") for i in range(3)]
        alive = [replace(one, node="n1", claims=(held[i],)) for i, one in enumerate(members(3))]
        cluster = two_nodes_of_pairs(*held)
        new = replace(members(4, wish())[3], slot=slot)
        assert devices_of(planned(cluster, gang([*alive, new]))) == {"w3": ["n2/gpu-5"]}
        taken = two_nodes_of_pairs(holding("gpu-5", pool="n2/gpu", name="thief"))
        assert where(planned(taken, gang([new]))) == {"w3": "n2"}
        gone = gang([new], excluded=frozenset({"n2"}))
        assert where(planned(cluster, gone)) == {"w3": "n1"}

    def test_two_replacements_get_their_own_devices(self) -> None:
        slots = [
            Slot("n1", (DeviceId(DRIVER, "n1/gpu", "gpu-6"),)),
            Slot("n1", (DeviceId(DRIVER, "n1/gpu", "gpu-1"),)),
        ]
        new = [replace(one, slot=slots[i]) for i, one in enumerate(members(2, wish()))]
        assert devices_of(planned(two_nodes_of_pairs(), gang(new))) == {
            "w0": ["n1/gpu-6"],
            "w1": ["n1/gpu-1"],
        }

    def test_members_without_claims_are_placed_too(self) -> None:
        cluster = snapshot([node("n1", cpu=1000), node("n2", cpu=2500)], [])
        found = planned(cluster, gang([member(f"w{i}") for i in range(3)]))
        assert Counter(where(found).values()) == {"n1": 1, "n2": 2}

    def test_a_bound_member_whose_claim_is_pending_gets_it_where_it_is(self) -> None:
        slices = [one for name in ("n1", "n2") for one in slices_of(name, gpus("a"))]
        nodes = [node("n1"), node("n2", cpu=1000, used={"cpu": 1000}, pods=1)]
        bound = replace(member("b", claim("c", wish())), node="n2")
        found = planned(snapshot(nodes, slices), gang([bound, *members(1, wish())]))
        assert where(found) == {"b": "n2", "w0": "n1"}

    def test_a_pool_of_all_nodes_of_which_nothing_is_wanted_changes_nothing(self) -> None:
        network = slice_of(device("x"), pool="net", name="net", driver=NIC_DRIVER, allNodes=True)
        slices = [*slices_of("n1", gpus("a", "a")), network]
        everything = wish(allocationMode="All")
        del everything["exactly"]["count"]
        found = planned(snapshot([node("n1")], slices), gang(members(1, everything)))
        assert devices_of(found) == {"w0": ["n1/gpu-0", "n1/gpu-1"]}

    def test_rules_that_are_not_modelled_make_the_plan_optimistic(self) -> None:
        pods = members(2, wish(), unmodelled=("podAffinity", "volumes"))
        found = planned(two_nodes_of_pairs(), gang(pods))
        assert isinstance(found, GangPlan)
        assert found.optimistic == ("podAffinity", "volumes")

    def test_the_pools_that_have_devices_are_named_once(self) -> None:
        found = planned(two_nodes_of_pairs(), gang(members(9, wish())))
        assert isinstance(found, GangPlan)
        assert [str(one) for one in found.pools] == [f"{DRIVER}/n1/gpu", f"{DRIVER}/n2/gpu"]

    def test_claims_of_other_drivers_are_planned_with_the_gpus(self) -> None:
        nics = [device("nic-0", attributes={"resource.kubernetes.io/pcieRoot": {"string": "r1"}})]
        slices = [
            *slices_of("n1", gpus("a")),
            *slices_of("n2", gpus("a")),
            slice_of(*nics, node="n2", pool="n2/nic", name="nics", driver=NIC_DRIVER),
        ]
        pods = [member("w", claim("g", wish()), claim("n", wish(class_name="nic")))]
        found = planned(snapshot([node("n1"), node("n2")], slices), gang(pods))
        assert devices_of(found) == {"w": ["n2/gpu-0", "n2/nic-0"]}


class TestTaints:
    def rule(self, value: str) -> Raw:
        return {
            "metadata": {"name": f"fence-{value}"},
            "spec": {
                "deviceSelector": {"pool": "n1/gpu"},
                "taint": {"key": "dragoon.dev/gang", "value": value, "effect": "NoSchedule"},
            },
        }

    def test_a_gang_uses_devices_behind_its_own_fence_only(self) -> None:
        cluster = snapshot([node("n1")], slices_of("n1", gpus("a")), rules=[self.rule("g")])
        own = Toleration("dragoon.dev/gang", "Equal", "g", "NoSchedule")
        found = planned(cluster, gang(members(1, wish()), tolerations=(own,)))
        assert isinstance(found, GangPlan)
        (placement,) = found.placements
        (allocation,) = placement.allocations.values()
        assert "tolerations" not in allocation["devices"]["results"][0]
        other = Toleration("dragoon.dev/gang", "Equal", "h", "NoSchedule")
        assert isinstance(planned(cluster, gang(members(1, wish()), tolerations=(other,))), NoRoom)


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"minimum": 0}, "size: found 0, allowed is a number from 1"),
            ({"minimum": 5}, "2 of 5 members are there"),
            ({"maximum": 1}, "largest size: found 1, allowed is a number from the size 2"),
        ],
    )
    def test_sizes(self, changes: dict[str, int], message: str) -> None:
        ask = replace(gang(members(2, wish())), **changes)  # type: ignore[arg-type]
        found = planned(two_nodes_of_pairs(), ask)
        assert isinstance(found, Refused)
        assert found.message == message

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("scheduler", "other", "schedulerName: members have default-scheduler, other"),
            ("namespace", "team-b", "namespace: members have team-a, team-b"),
            ("uid", "pod-w0", "pod UID 'pod-w0' is there 2 times"),
        ],
    )
    def test_members_that_do_not_go_together(self, field: str, value: str, message: str) -> None:
        first, second = members(2, wish())
        found = planned(two_nodes_of_pairs(), gang([first, replace(second, **{field: value})]))  # type: ignore[arg-type]
        assert isinstance(found, Refused)
        assert found.message.startswith(message)

    def test_a_claim_that_more_pods_share_than_can(self) -> None:
        shared = claim("s", wish())
        found = planned(
            two_nodes_of_pairs(), gang([member(f"w{i}", shared, cpu=0) for i in range(257)])
        )
        assert isinstance(found, Refused)
        assert found.message == "claim uid-s: 257 members share it, allowed are 256"

    def test_a_claim_that_is_wrong_is_named(self) -> None:
        broken = claim("broken", {"name": "g"})
        found = planned(two_nodes_of_pairs(), gang([member("w", broken)]))
        assert isinstance(found, Refused)
        assert "ResourceClaim broken: request g" in found.message

    def test_an_extended_resource_comes_back_as_a_template(self) -> None:
        cluster = replace(two_nodes_of_pairs(), extended={"example.com/gpu": "whole"})
        pod = replace(member("w"), requests={"cpu": 1000, "example.com/gpu": 2})
        found = planned(cluster, gang([pod]))
        assert isinstance(found, Refused)
        assert "asks for 2 example.com/gpu" in found.message
        assert "deviceClassName: whole\n          count: 2\n" in found.instead

    def test_a_device_plugin_s_resource_is_an_ordinary_one_where_a_node_has_it(self) -> None:
        facts = node("n1")
        facts = replace(facts, allocatable={**facts.allocatable, "nvidia.com/gpu": 2})
        pod = replace(member("w"), requests={"nvidia.com/gpu": 2})
        assert where(planned(snapshot([facts], []), gang([pod]))) == {"w": "n1"}
        found = planned(two_nodes_of_pairs(), gang([pod]))
        assert isinstance(found, Refused)
        assert "deviceClassName: gpu.dragoon.dev" in found.instead
