import json
from pathlib import Path

import pytest

from dragoon.cli import main
from dragoon.cli.topo import describe
from dragoon.gpu.model import Inventory
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.profiles import find_machine

Capture = pytest.CaptureFixture[str]


def test_the_matrix_the_groups_and_the_legend_are_printed(capsys: Capture) -> None:
    assert main.run(["topo", "--simulate", "rtx8000-4way-crossed-bridges"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[:5] == [
        "-  GPU               0     1     2     3",
        "0  gpu-0000-11-00-0  X     NODE  SYS   NV2",
        "1  gpu-0000-13-00-0  NODE  X     NV2   SYS",
        "2  gpu-0000-15-00-0  SYS   NV2   X     NODE",
        "3  gpu-0000-17-00-0  NV2   SYS   NODE  X",
    ]
    assert "NV#   # NVLinks that are up" in text
    assert "NVLink domains: (0, 3) (1, 2)\n" in text
    assert "NUMA node 1: 2, 3\n" in text
    assert "Fabric unsupported: 0, 1, 2, 3\n" in text


def test_the_matrix_is_the_same_from_both_ends(capsys: Capture) -> None:
    main.run(["topo", "--simulate", "hgx-b200-one-gpu-off-nvlink", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    relations = found["relations"]
    assert [list(column) for column in zip(*relations, strict=True)] == relations
    assert relations[2] == ["NODE", "NODE", "X", "NODE", "SYS", "SYS", "SYS", "SYS"]
    assert found["nvlinkDomains"] == [[d["name"] for n, d in enumerate(found["devices"]) if n != 2]]


def test_cards_behind_one_pcie_switch_are_grouped(capsys: Capture) -> None:
    main.run(["topo", "--simulate", "dgx-a100-40gb", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    names = [device["name"] for device in found["devices"]]
    positions = [[names.index(name) for name in group] for group in found["pcieSwitches"]]
    assert sorted(positions) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_the_fabric_is_shown_with_its_clique(capsys: Capture) -> None:
    main.run(["topo", "--simulate", "gb200-tray-4gpu"])
    told = capsys.readouterr().out
    assert "Fabric completed clique 11111111-2222-3333-4444-555555555555.4026: 0, 1, 2, 3\n" in told


def test_a_link_that_is_down_is_not_counted(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "gpus.json"
    hardware = Hardware.installed(file, find_machine("rtx3090-2way-bridge"), "n1")
    hardware.drop_link(0, 0)
    main.run(["topo", "--simulate-state", str(file), "-o", "json"])
    assert json.loads(capsys.readouterr().out)["relations"][0][1] == "NV3"


def test_c01_a_lost_card_makes_the_topology_degraded(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "gpus.json"
    Hardware.installed(file, find_machine("dgx-h100"), "n1").lose(0)
    assert main.run(["topo", "--simulate-state", str(file)]) == 1
    told = capsys.readouterr()
    assert "degraded: GPU 0000:11:00.0 is lost" in told.err
    assert "gpu-0000-11-00-0" not in told.out


def test_a_node_without_gpus_has_an_empty_topology() -> None:
    found = describe(Inventory())
    assert (found["devices"], found["relations"], found["nvlinkDomains"]) == ([], [], [])
