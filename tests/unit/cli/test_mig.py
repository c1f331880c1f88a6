"""What `dragoon mig` says of simulated cards, with and without instances and claims."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoon.cli import main
from dragoon.gpu.model import PciAddress, Placement
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.journal import Entry, HeldDevice, Journal, State
from dragoon.prepare.mig import MigPart
from dragoon.prepare.paths import Paths
from tests.unit.gpu.rig import rig

Capture = pytest.CaptureFixture[str]

MACHINE = "dgx-h100"


def said(capsys: Capture, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    assert main.run(["mig", *arguments, "-o", "json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["apiVersion"] == "gpu.dragoon.dev/v1alpha1"
    items: list[dict[str, Any]] = found["items"]
    return items


def test_a_machine_without_mig_is_told_so(capsys: Capture) -> None:
    assert main.run(["mig", "--simulate", "t4"]) == 0
    told = capsys.readouterr()
    assert told.out.split() == ["GPU", "DEVICE", "PROFILE", "PLACEMENT", "UUID", "CLAIM"]
    assert told.err == "no GPU of this node has MIG\n"


def test_profiles_are_those_of_each_card(capsys: Capture) -> None:
    found = said(capsys, "profiles", "--simulate", "mixed-a30-t4")
    assert {(one["profile"], tuple(one["starts"])) for one in found} >= {
        ("1g.6gb", (0, 1, 2, 3)),
        ("2g.12gb", (0, 2)),
        ("4g.24gb", (0,)),
    }
    assert len({one["gpu"] for one in found}) == 1
    assert all(one["free"] == one["starts"] and one["mode"] == "off" for one in found)


def test_what_is_there_is_listed_with_its_claim_and_takes_its_placements(
    capsys: Capture, tmp_path: Path
) -> None:
    with rig(MACHINE, tmp_path) as machine:
        address = machine.address(0)
        machine.gpus.mig.set_mode(address, enabled=True)
        mine = machine.gpus.mig.create(address, "3g.40gb", Placement(4, 4))
        machine.gpus.mig.create(address, "1g.10gb", Placement(0, 1))
    journaled(tmp_path, address, str(mine.uuid))
    where = (
        *("--simulate-state", str(tmp_path / "machine.json")),
        *("--state-dir", str(tmp_path / "state")),
    )

    listed = said(capsys, *where)
    slug = f"gpu-{address.slug}"
    assert [(one["device"], one["claim"]) for one in listed] == [
        (f"{slug}-mig-1g10gb-0", "no claim"),
        (f"{slug}-mig-3g40gb-4", "team-a/train"),
    ]
    assert listed[1]["uuid"] == mine.uuid

    places = {one["device"]: one["takenBy"] for one in said(capsys, "placements", *where)}
    assert places[f"{slug}-mig-1g10gb-5"] == ["3g.40gb at 4:4 (team-a/train)"]
    assert places[f"{slug}-mig-3g40gb-0"] == ["1g.10gb at 0:1 (no claim)"]
    assert places[f"{slug}-mig-2g20gb-2"] == []

    free = {
        one["profile"]: one["free"]
        for one in said(capsys, "profiles", *where)
        if one["gpu"] == str(address)
    }
    assert (free["1g.10gb"], free["2g.20gb"], free["7g.80gb"]) == ([1, 2, 3], [2], [])
    assert main.run(["mig", "placements", *where]) == 0
    assert "3g.40gb at 4:4 (team-a/train)" in capsys.readouterr().out


def test_names_are_those_that_other_commands_take(capsys: Capture, tmp_path: Path) -> None:
    with rig(MACHINE, tmp_path) as machine:
        address = machine.address(0)
        machine.gpus.mig.set_mode(address, enabled=True)
        machine.gpus.mig.create(address, "3g.40gb", Placement(4, 4))
    where = ("--simulate-state", str(tmp_path / "machine.json"), "-o", "name")
    assert main.run(["mig", *where]) == 0
    assert capsys.readouterr().out == f"device/gpu-{address.slug}-mig-3g40gb-4\n"
    assert main.run(["mig", "placements", *where]) == 0
    assert f"device/gpu-{address.slug}-mig-1g10gb-6\n" in capsys.readouterr().out
    assert main.run(["mig", "profiles", *where]) == 0
    names = capsys.readouterr().out.split()
    assert "profile/1g.10gb" in names
    assert len(names) == len(set(names)), "eight cards have them, each is told once"


def journaled(folder: Path, address: PciAddress, uuid: str) -> None:
    """A claim that has the instance."""
    paths = Paths("gpu.dragoon.dev", folder / "state", folder / "cdi")
    effects = HostEffects()
    effects.make_folder(paths.journal_folder, 0o700)
    held = HeldDevice(
        request="gpu",
        pool="n/gpu",
        device=f"gpu-{address.slug}-mig-3g40gb-4",
        address=str(address),
        uuid="GPU-1",
        cdi_id="x",
        mig=MigPart("3g.40gb", 4, 4, uuid=uuid),
    )
    Journal(effects, paths).begin(
        Entry(
            namespace="team-a",
            name="train",
            uid="u-1",
            boot_id="b",
            state=State.PREPARED,
            devices=(held,),
            steps=(),
        )
    )
