"""The map as data: what each card is, who holds it, and what is said of nodes and gangs."""

import json
from typing import Any

import pytest

from dragoon.diagnose.mapping import as_data, draw, page
from dragoon.diagnose.mapping.model import Card, ClusterMap, Node, State
from dragoon.diagnose.snapshot import ClusterSnapshot
from tests.unit.diagnose.cases import Raw, slice_
from tests.unit.diagnose.fleet import fleet
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot

_TAINT = {"key": "dragoon.dev/xid", "value": "79", "effect": "NoSchedule"}


def _only(found: ClusterMap) -> Node:
    (one,) = found.nodes
    return one


def _card(found: ClusterMap, address: str) -> Card:
    (one,) = (card for each in found.nodes for card in each.cards if card.address == address)
    return one


def test_devices_of_one_pci_address_are_one_card_in_several_forms() -> None:
    found = draw(fleet(1))
    assert [card.address for card in _only(found).cards][:2] == ["0000:11:00.0", "0000:13:00.0"]
    assert len(_only(found).cards) == 8
    card = _card(found, "0000:19:00.0")
    assert {"whole", "shared", "1g.10gb"} <= set(card.forms)
    assert card.memory == 81559 << 20


@pytest.mark.parametrize(
    ("address", "state", "fill", "claims"),
    [
        ("0000:11:00.0", State.WHOLE, 100, ["team-a/alone-gpu"]),
        ("0000:13:00.0", State.SHARED, 40, ["team-a/part-a-gpu", "team-a/part-b-gpu"]),
        ("0000:15:00.0", State.MIG, 24, ["team-a/slice-gpu"]),
        ("0000:17:00.0", State.FREE, 0, []),
    ],
)
def test_a_card_says_in_which_form_how_much_and_by_whom_it_is_held(
    address: str, state: State, fill: int, claims: list[str]
) -> None:
    card = _card(draw(fleet(1)), address)
    assert (card.state, card.fill) == (state, fill)
    assert [hold.claim for hold in card.holds] == claims


def test_a_free_card_is_unusable_when_every_device_of_it_is_tainted() -> None:
    bad, good = gpus(2)
    found = draw(snapshot(node(), slice_({**bad, "taints": [_TAINT]}, good)))
    assert [card.state for card in _only(found).cards] == [State.UNUSABLE, State.FREE]
    assert _only(found).cards[0].taints == ("dragoon.dev/xid=79:NoSchedule",)


def test_a_remark_of_health_does_not_make_a_card_unusable() -> None:
    (one,) = gpus(1)
    remark = {"key": "dragoon.dev/nvlink", "effect": "None"}
    card = _only(draw(snapshot(node(), slice_({**one, "taints": [remark]})))).cards[0]
    assert (card.state, card.taints) == (State.FREE, ("dragoon.dev/nvlink:None",))


def test_a_held_card_with_a_taint_is_still_told_as_held() -> None:
    (one,) = gpus(1)
    found = draw(snapshot(node(), slice_({**one, "taints": [_TAINT]}), holding("a", "gpu-0")))
    assert _only(found).cards[0].state is State.WHOLE


def test_a_card_of_unknown_memory_in_use_is_full() -> None:
    (one,) = gpus(1)
    without = {name: value for name, value in one.items() if name != "capacity"}
    card = _only(draw(snapshot(node(), slice_(without), holding("a", "gpu-0")))).cards[0]
    assert (card.memory, card.fill) == (0, 100)


def test_admin_access_holds_nothing() -> None:
    claim = holding("monitor", "gpu-0")
    claim["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
    card = _only(draw(snapshot(node(), slice_(*gpus(1)), claim))).cards[0]
    assert (card.state, card.holds) == (State.FREE, ())


def test_another_drivers_devices_and_claims_are_not_drawn() -> None:
    claim = holding("nic", "gpu-0")
    claim["status"]["allocation"]["devices"]["results"][0]["driver"] = "nic.example.com"
    other = slice_(*gpus(1))
    other["spec"]["driver"] = "nic.example.com"
    other["metadata"] = {"name": "other"}
    found = draw(snapshot(node(), slice_(*gpus(1)), other, claim))
    assert len(_only(found).cards) == 1
    assert found.claims == ()
    assert draw(snapshot(other), driver="nic.example.com").counts == {State.FREE: 1}


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = slice_(*gpus(2)), slice_(*gpus(1))
    old["metadata"] = {"name": "old"}
    new["spec"]["pool"] = {**new["spec"]["pool"], "generation": 7}
    assert len(_only(draw(snapshot(node(), old, new))).cards) == 1


@pytest.mark.parametrize(
    ("raw", "state"),
    [
        (node(), "schedulable"),
        ({**node(), "spec": {"unschedulable": True}}, "cordoned"),
        (node(taints=[{"key": "a", "effect": "NoSchedule"}]), "tainted a:NoSchedule"),
        (node("other"), "no such node"),
    ],
)
def test_nodes_are_told_apart_by_their_state(raw: Raw, state: str) -> None:
    assert dict(_only(draw(snapshot(raw, slice_(*gpus(1))))).places)["state"] == state


def test_nodes_are_grouped_by_the_usual_labels_and_those_that_are_named() -> None:
    labels: Any = {"topology.kubernetes.io/zone": "z1", "example.com/rack": "r7"}
    found = draw(snapshot(node(**labels), slice_(*gpus(1))), labels=["example.com/rack"])
    assert dict(_only(found).places) == {
        "topology.kubernetes.io/zone": "z1",
        "example.com/rack": "r7",
        "state": "schedulable",
    }


def test_rules_that_taint_a_pool_stand_at_its_node() -> None:
    def rule(name: str, selector: Raw) -> Raw:
        taint = {"key": "dragoon.dev/gang", "value": "train", "effect": "NoSchedule"}
        return {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceTaintRule",
            "metadata": {"name": name},
            "spec": {"deviceSelector": selector, "taint": taint},
        }

    ours = {"driver": "gpu.dragoon.dev"}
    found = draw(
        snapshot(
            node(),
            slice_(*gpus(1)),
            rule("here", {**ours, "pool": "n/gpu", "device": "gpu-0"}),
            rule("everywhere", {}),
            rule("elsewhere", {**ours, "pool": "other/gpu"}),
            rule("others", {"driver": "nic.example.com"}),
        )
    )
    fence = "dragoon.dev/gang=train:NoSchedule"
    assert _only(found).fences == (f"{fence} on gpu-0", fence)


def test_pods_of_gangs_are_told_by_their_gang_and_others_wait_by_name() -> None:
    found = draw(fleet(2, forms=1))
    holders = {one.name: one for one in found.claims}
    assert holders["team-a/train-1-0-gpu"].gang == "team-a/train"
    assert holders["team-a/alone-gpu"].gang == ""
    assert found.waiting == ("research/notebook",)


def test_what_cannot_be_read_is_noted_and_the_rest_is_drawn() -> None:
    broken = slice_(*gpus(1))
    broken["metadata"] = {"name": "broken"}
    broken["spec"] = {**broken["spec"], "devices": [{"name": 7}]}
    gang = {"apiVersion": "dragoon.dev/v1alpha1", "kind": "Gang", "metadata": {"name": "g"}}
    found = draw(snapshot(node(), slice_(*gpus(1)), broken, gang))
    assert len(_only(found).cards) == 1
    assert len(found.notes) == 1
    assert found.gangs[0].message


def test_an_empty_cluster_is_a_map_too() -> None:
    found = draw(ClusterSnapshot(source="nothing"))
    assert as_data(found)["nodes"] == []
    assert "0 nodes, 0 GPUs, 0 free" in page(found)


def test_the_same_snapshot_gives_the_same_page() -> None:
    assert page(draw(fleet(2))) == page(draw(fleet(2)))


def test_the_page_has_one_script_element_whatever_names_say() -> None:
    claim = holding("</script><script>alert(1)</script>", "gpu-0")
    text = page(draw(snapshot(node(), slice_(*gpus(1)), claim)))
    assert text.count("<script") == text.count("</script") == 2
    data = text.split('type="application/json">')[1].split("</script>")[0]
    assert json.loads(data)["claims"][0]["name"] == "default/</script><script>alert(1)</script>"
