"""A node on which claims are prepared, and its simulated cards: for commands that look at one."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.enforcement import Tier
from dragoon.cli import main
from dragoon.gpu.model import Gpu, PciAddress
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.enforcement.hami_steps import Region, region_file
from dragoon.prepare.enforcement.region import Slot
from dragoon.prepare.journal import Entry, HeldDevice, Journal, State
from dragoon.prepare.paths import Paths
from dragoon.prepare.shares import Share
from dragoon.prepare.step import Place
from dragoon.prepare.steps import Step
from tests.unit.gpu.rig import rig
from tests.unit.prepare.enforcement.regions import running

Capture = pytest.CaptureFixture[str]


GIB = 1 << 30


POD = "6b4f2b1c-0f0e-4c7e-9d3a-1f2e3d4c5b6a"


MACHINE = "dgx-h100"


class Node:
    """The folders of a node on which claims are prepared."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = Paths("gpu.dragoon.dev", root / "state", root / "cdi", root / "cgroup")
        self.effects = HostEffects()
        for folder in self.paths.folders:
            self.effects.make_folder(folder, 0o700)
        self.where = (
            *("--simulate-state", str(root / "machine.json")),
            *("--state-dir", str(root / "state")),
            *("--cgroup-root", str(root / "cgroup")),
        )

    def card(self, number: int) -> Gpu:
        """A card of the node's simulated machine."""
        with rig(MACHINE, self.root) as machine:
            return machine.gpu(number)

    def claim(self, name: str, held: HeldDevice, *steps: Step, pod: str = "") -> None:
        Journal(self.effects, self.paths).begin(
            Entry(
                namespace="team-a",
                name=name,
                uid=f"{name}-uid",
                boot_id="b",
                state=State.PREPARED,
                devices=(held,),
                steps=steps,
                pod_uid=pod,
            )
        )

    def share(self, name: str, address: PciAddress, uuid: str, container: str) -> None:
        """A share of 4 GiB and 50 % in one container, of which a process uses 3 GiB."""
        limits = Region(POD, container, (Slot(uuid, 4 * GIB, 50),), 1)
        limits.apply(Place(self.effects, self.paths, f"{name}-uid"))
        file = region_file(self.paths, POD, container)
        file.write_bytes(running(file.read_bytes(), 0, {0: 3 * GIB}))
        share = Share(4 * GIB, 50, 80 * GIB, Tier.HAMI, container)
        self.claim(name, device(address, uuid, share=share), limits, pod=POD)

    def said(self, capsys: Capture, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        assert main.run(["usage", *arguments, *self.where, "-o", "json"]) == code
        found = json.loads(capsys.readouterr().out)
        assert (found["apiVersion"], found["kind"]) == ("gpu.dragoon.dev/v1alpha1", "UsageList")
        items: list[dict[str, Any]] = found["items"]
        return items


def device(address: PciAddress, uuid: str, **part: Any) -> HeldDevice:
    return HeldDevice("gpu", "n/gpu", f"gpu-{address.slug}", str(address), uuid, "x", **part)
