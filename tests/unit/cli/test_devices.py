"""What `dragoon devices` says of every simulated machine, and of the cases of discovery."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon import quantity
from dragoon.api.slice_validation import check_slice
from dragoon.cli import main
from dragoon.cli.devices import report
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.sim.machine import FABRIC_COMPLETED, FABRIC_IN_PROGRESS, FabricRecord
from dragoon.gpu.sim.profiles import find_machine, shipped
from dragoon.gpu.sim.state import Fault
from tests.unit.cli.machines import Capture, a_machine, attribute, listed

ALL8 = [{0, 1, 2, 3, 4, 5, 6, 7}]


ALL4 = [{0, 1, 2, 3}]


DOMAINS: dict[str, list[set[int]]] = {
    "a100-80gb": [],
    "a30-2way": [],
    "a40-8way-bridge-pairs": [{0, 1}, {2, 3}, {4, 5}, {6, 7}],
    "a6000-3way-one-bridge": [{0, 1}],
    "b200-vm-8gpu-4numa": ALL8,
    "dgx-a100-40gb": ALL8,
    "dgx-h100": ALL8,
    "dgx2-16gpu": [set(range(16))],
    "gb10-single": [],
    "gb200-tray-4gpu": ALL4,
    "gh200-144g-single": [],
    "gh200-4way": ALL4,
    "h100-4way-direct": ALL4,
    "hgx-b200-8gpu": ALL8,
    "hgx-b200-one-gpu-off-nvlink": [{0, 1, 3, 4, 5, 6, 7}],
    "hgx-h200-8gpu": ALL8,
    "l20-4way-pcie": [],
    "l40s-4way-pcie": [],
    "mixed-3090-gtx1080": [],
    "mixed-a30-t4": [],
    "rtx-pro-6000-2way": [],
    "rtx3090-2way-bridge": [{0, 1}],
    "rtx4090-8way-pcie": [],
    "rtx8000-4way-crossed-bridges": [{0, 3}, {1, 2}],
    "t4": [],
    "vgpu-l40s-3way": [],
}


def memory(device: dict[str, Any]) -> int | None:
    value = device.get("capacity", {}).get("memory", {}).get("value")
    return quantity.parse(value).as_int64() if value else None


def domains(devices: list[dict[str, Any]]) -> list[set[int]]:
    groups: dict[str, set[int]] = {}
    for position, device in enumerate(devices):
        value = attribute(device, "nvlinkDomain")
        if value is not None:
            groups.setdefault(value, set()).add(position)
    return sorted(groups.values(), key=min)


def test_every_shipped_machine_has_an_expectation() -> None:
    assert set(DOMAINS) == set(shipped())


@pytest.mark.parametrize("name", shipped())
def test_every_machine_is_published_as_its_file_says(name: str, capsys: Capture) -> None:
    machine = find_machine(name)
    devices = listed(capsys, "--simulate", name)
    assert domains(devices) == DOMAINS[name]
    assert [device["name"] for device in devices] == [
        f"gpu-{card.address.slug}" for card in machine.cards
    ]
    for card, device in zip(machine.cards, devices, strict=True):
        assert attribute(device, "productName") == card.product
        assert attribute(device, "simulated") is True
        assert attribute(device, "resource.kubernetes.io/pciBusID") == str(card.address)
        assert attribute(device, "resource.kubernetes.io/numaNode") == card.numa_node
        assert memory(device) == (card.memory_mib and card.memory_mib * 2**20)
        assert "taints" not in device


def test_a_topology_file_of_the_user_is_simulated_too(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "schema: case-topology/1\nname: mine\ncount: 1\n"
        "gpus: [{index: 0, product: Tesla T4, memoryMiB: 15360}]\n"
    )
    (device,) = listed(capsys, "--simulate", str(file))
    assert attribute(device, "productName") == "Tesla T4"


def test_an_unknown_machine_is_wrong_usage_and_names_those_there_are(capsys: Capture) -> None:
    assert main.run(["devices", "--simulate", "dgx-h1000"]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert "found 'dgx-h1000'" in told.err
    assert "dgx-h100" in told.err


def test_no_driver_and_no_simulation_is_an_unreachable_source_with_a_hint(
    capsys: Capture, tmp_path: Path
) -> None:
    # The trees are empty, so that the test is the same on a machine with a driver's library.
    roots = [f"--{name}-root={tmp_path}" for name in ("sys", "proc", "dev")]
    code = main.run(["devices", "--node-name", "n1", *roots])
    told = capsys.readouterr()
    assert code == 3
    assert not told.out
    assert "NVML" in told.err
    assert "hint: install the NVIDIA driver, or simulate" in told.err


def test_the_table_has_one_line_for_each_device_and_no_decoration(capsys: Capture) -> None:
    assert main.run(["devices", "--simulate", "rtx3090-2way-bridge", "--node-name", "n1"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", header) == [
        *("NAME", "FORM", "PRODUCT", "MEMORY", "NVLINK DOMAIN", "NUMA", "PCIE ROOT", "TAINTS")
    ]
    assert len(lines) == 2
    for line in lines:
        assert "NVIDIA GeForce RTX 3090" in line
        assert "24.0 GiB" in line


def test_yaml_says_the_same_as_json(capsys: Capture) -> None:
    main.run(["devices", "--simulate", "t4", "-o", "yaml"])
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    main.run(["devices", "--simulate", "t4", "-o", "json"])
    assert json.loads(capsys.readouterr().out) == as_yaml


def test_driver_and_node_name_stand_in_the_slices(capsys: Capture) -> None:
    main.run(
        [
            *("devices", "--simulate", "t4", "-o", "json"),
            *("--node-name", "n7", "--driver-name", "gpu.example.com"),
        ]
    )
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["spec"]["nodeName"] == "n7"
    assert item["spec"]["driver"] == "gpu.example.com"
    assert item["spec"]["pool"]["name"] == "n7/gpu"


def test_c01_a_lost_card_is_tainted_and_the_others_keep_their_names(
    tmp_path: Path, capsys: Capture
) -> None:
    hardware, options = a_machine(tmp_path, "dgx-h100")
    before = listed(capsys, *options)
    hardware.lose(3)
    after = listed(capsys, *options, code=1)
    assert [d["name"] for d in after] == [d["name"] for d in before]
    tainted = [position for position, device in enumerate(after) if "taints" in device]
    assert tainted == [3]
    (taint,) = after[3]["taints"]
    assert (taint["key"], taint["effect"]) == ("dragoon.dev/lost", "NoSchedule")
    assert [d for d in after if d is not after[3]][:3] == before[:3]


def test_c01_a_lost_card_is_told_on_stderr_and_the_exit_code_says_degraded(
    tmp_path: Path, capsys: Capture
) -> None:
    hardware, options = a_machine(tmp_path, "dgx-h100")
    hardware.lose(3)
    assert main.run(["devices", *options]) == 1
    told = capsys.readouterr()
    assert re.search(r"^degraded: GPU 0000:17:00\.0 is lost: .+", told.err, re.MULTILINE)
    assert len(told.out.splitlines()) == 9


def test_c02_without_its_first_card_every_other_device_keeps_its_name(
    tmp_path: Path, capsys: Capture
) -> None:
    topology = yaml.safe_load(
        "schema: case-topology/1\nname: two\ncount: 2\ngpus:\n"
        "- {index: 0, product: Tesla T4, pci: '0000:3b:00.0'}\n"
        "- {index: 1, product: Tesla T4, pci: '0000:af:00.0'}\n"
    )
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(topology))
    both = listed(capsys, "--simulate", str(file))
    topology["gpus"] = [topology["gpus"][1] | {"index": 0}]
    file.write_text(yaml.safe_dump(topology | {"count": 1}))
    (left,) = listed(capsys, "--simulate", str(file))
    assert left["name"] == both[1]["name"] == "gpu-0000-af-00-0"
    assert not any("index" in name.lower() for name in left["attributes"])


def test_c04_a_card_without_a_memory_size_has_no_memory_capacity(capsys: Capture) -> None:
    (device,) = listed(capsys, "--simulate", "gb10-single")
    assert "capacity" not in device
    main.run(["devices", "--simulate", "gb10-single"])
    assert "unknown" in capsys.readouterr().out


def test_c05_the_card_off_nvlink_is_offered_outside_the_domain_of_seven(capsys: Capture) -> None:
    devices = listed(capsys, "--simulate", "hgx-b200-one-gpu-off-nvlink")
    assert len(devices) == 8
    assert domains(devices) == [{0, 1, 3, 4, 5, 6, 7}]
    assert attribute(devices[2], "nvlinkDomain") is None


def test_c07_bridged_pairs_are_read_and_not_guessed_from_neighbours(capsys: Capture) -> None:
    devices = listed(capsys, "--simulate", "rtx8000-4way-crossed-bridges")
    assert domains(devices) == [{0, 3}, {1, 2}]
    numa = [attribute(device, "resource.kubernetes.io/numaNode") for device in devices]
    assert numa[0] != numa[3]


def test_c07_a_dropped_bridge_dissolves_its_domain_only(tmp_path: Path, capsys: Capture) -> None:
    hardware, options = a_machine(tmp_path, "a40-8way-bridge-pairs")
    for link in range(4):
        hardware.drop_link(0, link)
    assert domains(listed(capsys, *options)) == [{2, 3}, {4, 5}, {6, 7}]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            FabricRecord(FABRIC_COMPLETED, 0, "11111111-2222-3333-4444-555555555555", 7),
            "11111111-2222-3333-4444-555555555555.7",
        ),
        (FabricRecord(FABRIC_COMPLETED), None),
        (FabricRecord(FABRIC_IN_PROGRESS), None),
        (FabricRecord(FABRIC_COMPLETED, 999, "11111111-2222-3333-4444-555555555555", 7), None),
    ],
    ids=["joined", "completed with a zero UUID", "in progress", "failed"],
)
def test_c10_only_a_joined_fabric_gives_a_clique(
    record: FabricRecord, expected: str | None, tmp_path: Path, capsys: Capture
) -> None:
    hardware, options = a_machine(tmp_path, "dgx-h100")
    hardware.set_fabric(0, record)
    devices = listed(capsys, *options)
    assert attribute(devices[0], "fabricClique") == expected
    assert len(devices) == 8


def test_c10_a_failed_fabric_shows_its_reason_in_topo(tmp_path: Path, capsys: Capture) -> None:
    hardware, options = a_machine(tmp_path, "dgx-h100")
    hardware.set_fabric(0, FabricRecord(FABRIC_COMPLETED, 999))
    assert main.run(["topo", *options, "-o", "json"]) == 0
    fabric = json.loads(capsys.readouterr().out)["devices"][0]["fabric"]
    assert fabric["reason"]


def test_c11_memory_and_architecture_come_from_the_card_and_not_from_its_name(
    capsys: Capture,
) -> None:
    (first, *_) = listed(capsys, "--simulate", "gh200-4way")
    assert "120GB" in attribute(first, "productName")
    assert memory(first) == 97871 * 2**20
    assert attribute(first, "architecture") == "Hopper"


@pytest.mark.parametrize(
    ("said", "published"),
    [("580.159.04", "580.159.4"), ("580.159.04.1", None), ("", None), ("570.1", "570.1.0")],
)
def test_c12_a_driver_version_that_is_no_version_costs_only_itself(
    said: str, published: str | None, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text(
        "schema: case-topology/1\nname: m\ncount: 1\n"
        f"driverVersion: '{said}'\n"
        "gpus: [{index: 0, product: Tesla T4, memoryMiB: 15360}]\n"
    )
    (device,) = listed(capsys, "--simulate", str(file))
    assert attribute(device, "driverVersion") == published
    assert attribute(device, "productName") == "Tesla T4"


@pytest.mark.parametrize("name", ["mixed-a30-t4", "l20-4way-pcie"])
def test_c13_whole_gpus_need_no_counters_with_or_without_mig_cards(
    name: str, capsys: Capture
) -> None:
    assert main.run(["devices", "--simulate", name, "-o", "json"]) == 0
    for item in json.loads(capsys.readouterr().out)["items"]:
        assert "sharedCounters" not in item["spec"]
        for device in item["spec"]["devices"]:
            assert "consumesCounters" not in device


def test_a_question_that_a_card_does_not_answer_is_noted_on_stderr(
    tmp_path: Path, capsys: Capture
) -> None:
    hardware, options = a_machine(tmp_path, "t4")
    hardware.fail(Fault("nvmlDeviceGetMemoryInfo", code=999))
    hardware.fail(Fault("nvmlDeviceGetMemoryInfo_v2", code=999))
    (device,) = listed(capsys, *options)
    assert "capacity" not in device
    main.run(["devices", *options])
    assert re.search(r"^note: GPU 0000:11:00\.0: .*memory", capsys.readouterr().err, re.MULTILINE)


def test_a_node_without_gpus_is_told_and_fine(capsys: Capture) -> None:
    assert report(Inventory()) == 0
    assert capsys.readouterr().err == "no GPUs on this node\nnext: dragoon check --category host\n"


def test_two_cards_at_one_address_are_not_offered(tmp_path: Path, capsys: Capture) -> None:
    hardware, options = a_machine(tmp_path, "dgx-h100")
    hardware.move(5, PciAddress.parse("0000:11:00.0"))
    devices = listed(capsys, *options, code=1)
    by_name = {device["name"]: device for device in devices}
    assert by_name["gpu-0000-11-00-0"]["taints"][0]["key"] == "dragoon.dev/lost"


@pytest.mark.parametrize("name", shipped())
def test_a_template_has_all_but_what_only_one_card_has(name: str, capsys: Capture) -> None:
    options = ("--forms", "whole,mig,shared", "--allow-unenforced-shares", "true")
    real = listed(capsys, "--simulate", name, *options)
    assert (
        main.run(["devices", "--simulate", name, *options, "--template", "new", "-o", "json"]) == 0
    )
    told = json.loads(capsys.readouterr().out)
    made = [device for item in told["items"] for device in item["spec"].get("devices", ())]
    own = {"uuid", "parentUUID", "simulated", "fabricClique"}
    assert [device["name"] for device in made] == [device["name"] for device in real]
    for device, model in zip(made, real, strict=True):
        assert device["attributes"].keys() == model["attributes"].keys() - own
        assert device.get("capacity") == model.get("capacity")
        assert "taints" not in device
    names = [item["metadata"]["name"] for item in told["items"]]
    assert len(set(names)) == len(names)
    for item in told["items"]:
        assert check_slice(item) == ()
        assert item["spec"]["nodeName"] == "new"
        assert item["spec"]["pool"]["name"].startswith("new/")


@pytest.mark.parametrize(
    ("what", "told"),
    [("n1", "found 'n1', allowed is node/NAME"), ("node/n1", "dragoon status node/n1")],
)
def test_a_node_is_one_of_a_saved_cluster(what: str, told: str, capsys: Capture) -> None:
    assert main.run(["devices", what]) == 2
    assert told in capsys.readouterr().err


def test_a_name_that_no_node_can_have_is_wrong_usage(capsys: Capture) -> None:
    assert main.run(["devices", "--simulate", "t4", "--template", "Not/A Node"]) == 2
    assert "--template: found 'Not/A Node'" in capsys.readouterr().err
