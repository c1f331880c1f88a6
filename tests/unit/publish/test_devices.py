"""Cases C02, C13, and cards that are lost or doubtful."""

from dataclasses import replace
from typing import Any

import pytest

from dragoon.api import names
from dragoon.gpu.model import Gpu, LostGpu
from dragoon.publish.device import Device, Taint
from dragoon.publish.devices import valid
from tests.unit.publish.nodes import (
    address,
    attribute,
    built,
    devices,
    gpu,
    inventory,
    machine,
    published,
)

LOST = Taint(names.TAINT_LOST, "GPU-is-lost.-Reboot-the-system")


def lost(number: int, **changes: Any) -> LostGpu:
    return LostGpu(address(number), "GPU is lost. Reboot the system", **changes)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx2-16gpu", "gb200-tray-4gpu", "mixed-a30-t4"])
def test_c02_a_card_that_leaves_renames_no_other(name: str) -> None:
    whole = machine(name)
    rest = replace(whole, gpus=tuple(replace(g, index=g.index - 1) for g in whole.gpus[1:]))
    before, after = published(whole), published(rest)
    first = min(before)
    assert set(before) - set(after) == {first}
    for device in after:
        assert attribute(before[device], "uuid") == attribute(after[device], "uuid")


def test_c13_a_card_without_mig_is_a_plain_device_beside_one_with_mig() -> None:
    found = published(machine("mixed-a30-t4"))
    assert len(found) == 2
    for device in found.values():
        assert set(device) == {"name", "attributes", "capacity"}


def test_devices_are_sorted_by_name() -> None:
    assert list(devices(inventory(gpu(3), gpu(0), gpu(11)))) == [
        "gpu-0000-10-00-0",
        "gpu-0000-13-00-0",
        "gpu-0000-1b-00-0",
    ]


def test_a_lost_card_stays_with_what_it_said_and_a_taint() -> None:
    before = devices(inventory(gpu(0), gpu(1), simulated=True))
    seen = {name: device.raw() for name, device in before.items()}
    seen["gpu-0000-11-00-0"]["attributes"]["nvlinkDomain"] = {"string": "x"}
    found = inventory(gpu(0), lost=(lost(1),), simulated=True)
    after = devices(found, last_seen=seen)
    card = after["gpu-0000-11-00-0"]
    assert card.taints == (LOST,)
    assert card.attributes == before["gpu-0000-11-00-0"].attributes
    assert card.capacity == before["gpu-0000-11-00-0"].capacity
    assert after["gpu-0000-10-00-0"] == before["gpu-0000-10-00-0"]
    assert built(found).problems == ("GPU 0000:11:00.0: GPU is lost. Reboot the system",)


def test_a_lost_card_never_seen_working_is_of_a_type_that_no_class_selects() -> None:
    card = devices(inventory(gpu(0), lost=(lost(1, uuid="GPU-1"),)))["gpu-0000-11-00-0"]
    assert attribute(card.raw(), "type") == "lost"
    assert attribute(card.raw(), "uuid") == "GPU-1"
    assert card.taints == (LOST,)


def test_a_lost_card_whose_uuid_is_not_valid_is_published_without_it() -> None:
    card = devices(inventory(gpu(0), lost=(lost(1, uuid="x" * 65),)))["gpu-0000-11-00-0"]
    assert set(card.attributes) == {"type", names.PCI_BUS_ID}


@pytest.mark.parametrize(
    "said",
    [
        {"attributes": {"type": {"string": "gpu"}, "uuid": {"string": "GPU-another"}}},
        {
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": "GPU-1"},
                "simulated": {"bool": True},
            }
        },
        {"attributes": {"type": {"string": "gpu", "int": 1}, "uuid": {"string": "GPU-1"}}},
    ],
    ids=["another card", "a simulated card", "nonsense"],
)
def test_a_lost_card_does_not_say_what_another_said(said: dict[str, Any]) -> None:
    name = "gpu-0000-11-00-0"
    found = inventory(gpu(0), lost=(lost(1, uuid="GPU-1"),))
    card = devices(found, last_seen={name: {"name": name, **said}})[name]
    assert attribute(card.raw(), "type") == "lost"


def test_a_lost_card_without_an_address_is_only_reported() -> None:
    found = built(inventory(gpu(0), lost=(LostGpu(None, "no handle"),)))
    assert len(found.devices) == 1
    assert found.problems == ("GPU at an unknown address: no handle",)


@pytest.mark.parametrize(
    "second",
    [gpu(0, uuid="GPU-other"), gpu(1, uuid=gpu(0).uuid)],
    ids=["one address", "one UUID"],
)
def test_two_cards_that_cannot_be_told_apart_are_both_kept_back(second: Gpu) -> None:
    found = built(inventory(gpu(0), second, gpu(2)))
    free = [device.name for device in found.devices if not device.taints]
    assert free == ["gpu-0000-12-00-0"]
    assert len({device.name for device in found.devices}) == len(found.devices)
    assert all("cards claim" in problem for problem in found.problems)
    assert found.problems


def test_a_card_that_is_both_found_and_lost_is_lost() -> None:
    (card,) = built(inventory(gpu(0), lost=(lost(0),))).devices
    assert [taint.key for taint in card.taints] == [names.TAINT_LOST]


def test_taints_of_working_cards_are_published() -> None:
    taint = Taint(names.TAINT_OTHER_OWNER, "nvidia.com-gpu")
    found = devices(inventory(), taints={address(1): (taint,)})
    assert found["gpu-0000-11-00-0"].raw()["taints"] == [
        {"key": "dragoon.dev/other-owner", "value": "nvidia.com-gpu", "effect": "NoSchedule"}
    ]
    assert "taints" not in found["gpu-0000-10-00-0"].raw()


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("GPU is lost. Reboot the system", "GPU-is-lost.-Reboot-the-system"),
        ("(-) ...", ""),
        ("x" * 62 + " y", "x" * 62),
        ("Gerät fehlt", "Ger-t-fehlt"),
    ],
)
def test_a_reason_becomes_a_label_value(reason: str, value: str) -> None:
    assert Taint.because(names.TAINT_LOST, reason).value == value


def test_devices_that_the_api_would_refuse_are_told_and_kept_back() -> None:
    good = Device("gpu-a", {}, {})
    bad = Device("GPU-b", {}, {})
    kept, findings = valid((good, bad, Device("gpu-c", {}, {}), Device("gpu-c", {}, {})))
    assert kept == (good,)
    assert {str(finding.found) for finding in findings} == {"GPU-b", "gpu-c"}
