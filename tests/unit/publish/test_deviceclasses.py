"""The device classes: which devices they take, and that they fail on none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.api import names
from dragoon.cel import compile_selector, device_view
from dragoon.gpu.model import Inventory, LostGpu
from tests.unit.publish.nodes import DRIVER, address, gpu, inventory, machine, published

FOLDER = Path(__file__).parents[3] / "deviceclasses"
CLASSES = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in FOLDER.glob("*.yaml")}

Object = dict[str, Any]


def takes(name: str, device: Object, driver: str = DRIVER) -> bool:
    """Whether every selector of the class is true; an error fails the test."""
    selectors = CLASSES[name]["spec"]["selectors"]
    view = device_view(driver, device)
    return all(compile_selector(s["cel"]["expression"]).evaluate(view) for s in selectors)


def takers(device: Object, driver: str = DRIVER) -> set[str]:
    return {name for name in CLASSES if takes(name, device, driver)}


def only(found: Inventory) -> Object:
    (device,) = published(found).values()
    return device


def attributes(**values: Any) -> Object:
    return {"name": "d", "attributes": values}


def test_each_file_is_one_class_of_its_name() -> None:
    assert set(CLASSES) == {names.CLASS_GPU, names.CLASS_SIMULATED}
    for name, found in CLASSES.items():
        assert (found["apiVersion"], found["kind"]) == ("resource.k8s.io/v1", "DeviceClass")
        assert found["metadata"]["name"] == name


def test_a_real_gpu_belongs_to_the_class_of_whole_gpus() -> None:
    assert takers(only(inventory(gpu(0)))) == {names.CLASS_GPU}


@pytest.mark.parametrize("name", ["dgx-h100", "gb10-single", "mixed-a30-t4"])
def test_simulated_gpus_belong_to_their_own_class_only(name: str) -> None:
    for device in published(machine(name)).values():
        assert takers(device) == {names.CLASS_SIMULATED}


@pytest.mark.parametrize("simulated", [True, False])
def test_a_lost_card_never_seen_working_belongs_to_none(*, simulated: bool) -> None:
    lost = Inventory(lost=(LostGpu(address(0), "gone"),), simulated=simulated)
    assert takers(only(lost)) == set()


@pytest.mark.parametrize("kind", ["shared", "mig"])
def test_other_forms_are_left_to_their_classes(kind: str) -> None:
    assert takers(attributes(type={"string": kind})) == set()


@pytest.mark.parametrize(
    "device",
    [
        {"name": "d"},
        attributes(),
        attributes(type={"int": 3}),
        attributes(type={"bool": True}, simulated={"string": "yes"}),
        attributes(type={"version": "1.0.0"}, simulated={"int": 1}),
        attributes(**{"gpu.dragoon.dev/type": {"string": "other"}}),
    ],
)
@pytest.mark.parametrize("driver", [DRIVER, "gpu.nvidia.com", "nic.example.com"])
def test_no_device_of_any_driver_makes_a_selector_fail(device: Object, driver: str) -> None:
    assert takers(device, driver) == set()


def test_another_drivers_device_is_not_taken_for_looking_like_ours() -> None:
    ours = only(replace(inventory(gpu(0)), simulated=True))
    qualified = {f"{DRIVER}/{k}" if "/" not in k else k: v for k, v in ours["attributes"].items()}
    assert takers({"name": "d", "attributes": qualified}, "gpu.example.com") == set()
