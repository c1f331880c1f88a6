"""Case C52: somebody else offers the same cards."""

from typing import Any

import pytest

from dragoon.gpu.model import Inventory
from dragoon.publish import owners
from tests.unit.publish.nodes import DRIVER, NODE, address, gpu, inventory

Object = dict[str, Any]

CARDS = (address(0), address(1))


def node(*, labels: Any = None, **allocatable: Any) -> Object:
    return {
        "metadata": {"name": NODE, "labels": labels},
        "status": {"allocatable": {"cpu": "8", "memory": "64Gi", **allocatable}},
    }


def slice_of(driver: str, **attributes: Any) -> Object:
    said = {name.replace("__", "/"): value for name, value in attributes.items()}
    return {
        "spec": {"driver": driver, "devices": [{"name": "a"}, {"name": "d", "attributes": said}]}
    }


def found(node_: Object, *slices: Object, inventory_: Inventory | None = None) -> Any:
    return owners.find(node_, slices, inventory_ or inventory(), driver=DRIVER)


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"]
)
def test_c52_a_device_plugin_owns_every_card(resource: str) -> None:
    (owner,) = found(node(**{resource: "8"}))
    assert owner.name == resource
    assert owner.cards == CARDS


@pytest.mark.parametrize(
    "allocatable",
    [{}, {"nvidia.com/gpu": "0"}, {"nvidia.com/gpu": 0}, {"amd.com/gpu": "8"}, {"my/gpu": "1"}],
)
def test_c52_a_node_without_a_device_plugin_has_no_other_owner(allocatable: Any) -> None:
    assert found(node(**allocatable)) == ()


def test_c52_a_node_without_gpus_has_no_other_owner() -> None:
    assert found(node(**{"nvidia.com/gpu": "8"}), inventory_=Inventory()) == ()


def test_c52_an_amount_that_cannot_be_read_counts() -> None:
    assert found(node(**{"nvidia.com/gpu": "many"}))


@pytest.mark.parametrize(
    "attributes",
    [
        {"uuid": {"string": gpu(1).uuid}},
        {"uuid": {"string": gpu(1).uuid.upper()}},
        {"parentUUID": {"string": gpu(1).uuid}},
        {"resource.kubernetes.io__pciBusID": {"string": "0000:11:00.0"}},
        {"pciBusID": {"string": "00000000:11:00.0"}},
    ],
)
def test_c52_another_driver_owns_the_cards_it_names(attributes: Any) -> None:
    (owner,) = found(node(), slice_of("gpu.nvidia.com", **attributes))
    assert owner.name == "gpu.nvidia.com"
    assert owner.cards == (address(1),)


@pytest.mark.parametrize(
    "attributes",
    [
        {"uuid": {"string": "GPU-another"}},
        {"resource.kubernetes.io__pciBusID": {"string": "0000:99:00.0"}},
        {"pciBusID": {"string": "?"}},
        {"pciBusID": {"int": 17}},
        {"nextGpu": {"string": "0000:11:00.0"}},
    ],
)
def test_c52_another_drivers_other_devices_are_no_owner(attributes: Any) -> None:
    assert found(node(), slice_of("nic.example.com", **attributes)) == ()


def test_c52_our_own_slices_are_no_other_owner() -> None:
    assert found(node(), slice_of(DRIVER, uuid={"string": gpu(1).uuid})) == ()


def test_c52_every_owned_card_gets_one_noschedule_taint() -> None:
    two = found(
        node(**{"nvidia.com/gpu": "2"}),
        slice_of("gpu.nvidia.com", uuid={"string": gpu(1).uuid}),
    )
    assert [owner.name for owner in two] == ["gpu.nvidia.com", "nvidia.com/gpu"]
    tainted = {card: [t.raw() for t in taints] for card, taints in owners.taints(two).items()}
    effect = {"key": "dragoon.dev/other-owner", "effect": "NoSchedule"}
    assert tainted == {
        address(0): [{**effect, "value": "nvidia.com-gpu"}],
        address(1): [{**effect, "value": "gpu.nvidia.com"}],
    }


@pytest.mark.parametrize(
    ("labels", "accepted"),
    [
        ({"dragoon.dev/coexist": "true"}, True),
        ({"dragoon.dev/coexist": "false"}, False),
        ({"dragoon.dev/coexist": "True"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_c52_a_label_of_the_node_accepts_two_owners(labels: Any, *, accepted: bool) -> None:
    assert owners.coexists(node(labels=labels)) is accepted


def test_c52_the_text_says_who_and_what_to_do() -> None:
    text = owners.describe(found(node(**{"nvidia.com/gpu": "2"})))
    assert "a device plugin offers nvidia.com/gpu: 2 (2 GPUs)" in text
    assert "dragoon.dev/coexist=true" in text
    assert len(text.encode()) <= 1024
