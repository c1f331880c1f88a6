"""The device classes: which devices they take, and that they fail on none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.api import names
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.forms import Form
from dragoon.cel import compile_selector, device_view
from dragoon.gpu.model import Inventory, LostGpu
from dragoon.publish.choosing import Wishes
from dragoon.publish.devices import build
from tests.unit.publish.divided import divisible, division
from tests.unit.publish.nodes import (
    DRIVER,
    address,
    attribute,
    gpu,
    inventory,
    machine,
    published,
)

FOLDER = Path(__file__).parents[3] / "deviceclasses"
CLASSES = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in FOLDER.glob("*.yaml")}
SAMPLES = {
    path.stem: yaml.safe_load(path.read_text("utf-8")) for path in FOLDER.glob("samples/*.yaml")
}

Object = dict[str, Any]


def takes(class_: Object, device: Object, driver: str = DRIVER) -> bool:
    """Whether every selector of the class is true; an error fails the test."""
    view = device_view(driver, device)
    selectors = class_["spec"]["selectors"]
    return all(compile_selector(s["cel"]["expression"]).evaluate(view) for s in selectors)


def takers(device: Object, driver: str = DRIVER) -> set[str]:
    return {name for name, class_ in CLASSES.items() if takes(class_, device, driver)}


def samples(device: Object, driver: str = DRIVER) -> set[str]:
    return {name for name, class_ in SAMPLES.items() if takes(class_, device, driver)}


def only(found: Inventory) -> Object:
    (device,) = published(found).values()
    return device


def attributes(**values: Any) -> Object:
    return {"name": "d", "attributes": values}


def test_each_file_is_one_class_of_its_name() -> None:
    assert set(CLASSES) == {
        *(names.CLASS_GPU, names.CLASS_SIMULATED, names.CLASS_MIG, names.CLASS_SHARED)
    }
    named = CLASSES | {f"{name}.dragoon.dev": found for name, found in SAMPLES.items()}
    for name, found in named.items():
        assert (found["apiVersion"], found["kind"]) == ("resource.k8s.io/v1", "DeviceClass")
        assert found["metadata"]["name"] == name


def test_the_samples_are_all_listed() -> None:
    page = (FOLDER / "samples/README.md").read_text("utf-8")
    assert all(f"`{name}.yaml`" in page for name in SAMPLES)


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


def forms(*tiers: Tier, simulated: bool = False) -> dict[str, Object]:
    """An H100 in all its forms, by their type and profile."""
    wishes = Wishes(tuple(Form), enforcement=NodeEnforcement.of(tiers))
    found = Inventory(gpus=(divisible(),), simulated=simulated)
    built = build(found, wishes=wishes, divisions={address(0): division()})
    return {
        f"{attribute(raw, 'type')} {attribute(raw, 'profile') or ''}".strip(): raw
        for raw in (device.raw() for device in built.devices)
    }


def test_each_form_belongs_to_its_class() -> None:
    found = {name: takers(raw) for name, raw in forms(Tier.CGROUP).items()}
    assert found.pop("gpu") == {names.CLASS_GPU}
    assert found.pop("shared") == {names.CLASS_SHARED}
    assert set(map(frozenset, found.values())) == {frozenset({names.CLASS_MIG})}


@pytest.mark.parametrize(
    ("tier", "classes"),
    [
        (Tier.CGROUP, {"shared-hard", "shared-unenforced"}),
        (Tier.HAMI, {"shared-unenforced"}),
        (Tier.NONE, {"shared-unenforced"}),
    ],
)
def test_a_share_belongs_to_the_classes_that_its_enforcement_is_enough_for(
    tier: Tier, classes: set[str]
) -> None:
    shared = forms(tier)["shared"]
    assert takers(shared) == (set() if tier is Tier.NONE else {names.CLASS_SHARED})
    assert samples(shared) == classes


def test_classes_of_a_size_take_that_size() -> None:
    found = forms(Tier.HAMI)
    assert samples(found["gpu"]) == {"gpu-40gb", "gpu-80gb", "nvidia-com-gpu"}
    assert samples(found["mig 1g.10gb"]) == {"mig-10gb"}
    assert samples(found["mig 2g.20gb"]) == {"mig-20gb"}
    assert samples(found["mig 3g.40gb"]) == set()


def test_simulated_forms_belong_to_classes_for_trying_out_only() -> None:
    for name, device in forms(Tier.HAMI, simulated=True).items():
        kind = name.partition(" ")[0]
        assert takers(device) == ({names.CLASS_SIMULATED} if kind == "gpu" else set())
        assert samples(device) == (set() if kind == "gpu" else {f"sim-{kind}"})


def test_one_sample_serves_pods_that_ask_for_nvidia_com_gpu() -> None:
    extended = {n: c["spec"].get("extendedResourceName") for n, c in (CLASSES | SAMPLES).items()}
    assert {n: e for n, e in extended.items() if e} == {"nvidia-com-gpu": "nvidia.com/gpu"}


@pytest.mark.parametrize("kind", ["shared", "mig"])
def test_a_form_without_its_attributes_is_in_no_class_that_demands_them(kind: str) -> None:
    device = attributes(type={"string": kind})
    assert takers(device) == ({names.CLASS_MIG} if kind == "mig" else set())


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
    assert samples(device, driver) == set()


def test_another_drivers_device_is_not_taken_for_looking_like_ours() -> None:
    ours = only(replace(inventory(gpu(0)), simulated=True))
    qualified = {f"{DRIVER}/{k}" if "/" not in k else k: v for k, v in ours["attributes"].items()}
    assert takers({"name": "d", "attributes": qualified}, "gpu.example.com") == set()
    assert samples({"name": "d", "attributes": qualified}, "gpu.example.com") == set()
