"""Devices in slices: limits, names, owners."""

import pytest

from dragoon.api.slice_validation import check_pool, check_slice
from dragoon.errors import ConfigError
from dragoon.gpu.model import Inventory
from dragoon.gpu.sim.profiles import shipped
from dragoon.publish import slices
from dragoon.publish.device import Device
from dragoon.publish.slices import Pool, check_node_name, index_of, new, pack, render
from tests.unit.publish.nodes import DRIVER, NODE, NODE_UID, inventory, machine


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_machine_gives_valid_slices(name: str) -> None:
    found = machine(name)
    rendered = render(found, node=NODE, driver=DRIVER)
    assert [str(f) for each in rendered for f in check_slice(each)] == []
    assert check_pool(rendered) == ()
    assert sum(len(each["spec"]["devices"]) for each in rendered) == len(found.gpus)


def test_a_node_without_gpus_has_one_empty_slice() -> None:
    (only,) = render(Inventory(), node=NODE, driver=DRIVER)
    assert only["spec"]["devices"] == []
    assert only["spec"]["pool"] == {
        "name": "node-a/gpu",
        "generation": 1,
        "resourceSliceCount": 1,
    }
    assert check_slice(only) == ()


def test_devices_are_packed_in_order_up_to_the_limit() -> None:
    many = [Device(f"gpu-{n:03d}", {}, {}) for n in range(130)]
    parts = pack(many)
    assert [len(part) for part in parts] == [64, 64, 2]
    assert [device for part in parts for device in part] == many


def test_a_slice_is_owned_by_its_node() -> None:
    pool = Pool(DRIVER, NODE, NODE_UID)
    made = new(pool, 17, slices.spec(pool, {"devices": []}, count=18, generation=3))
    assert made["metadata"] == {
        "generateName": "00011-gpu.dragoon.dev-node-a-",
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": NODE,
                "uid": NODE_UID,
                "controller": True,
            }
        ],
    }


def test_the_index_is_read_back_from_the_name() -> None:
    assert index_of({"metadata": {"name": "00011-gpu.dragoon.dev-node-a-x7k2p"}}) == 17
    assert index_of({"metadata": {"name": "node-a-gpu.dragoon.dev-x7k2p"}}) is None
    assert index_of({"metadata": {"name": "0001-gpu.dragoon.dev"}}) is None


def test_rendering_twice_gives_the_same() -> None:
    assert render(inventory(), node=NODE, driver=DRIVER) == render(
        inventory(), node=NODE, driver=DRIVER
    )


@pytest.mark.parametrize("name", ["", "Node-A", "node_a", "a" * 250])
def test_a_name_that_no_node_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="node name: found"):
        check_node_name(name)


@pytest.mark.parametrize("name", ["a" * 249, "a" * 34 + ".b" * 40, "a" * 33 + "-b" * 40])
def test_a_long_node_name_fits(name: str) -> None:
    check_node_name(name)
    (only,) = render(Inventory(), node=name, driver=DRIVER)
    assert check_slice(only) == ()
