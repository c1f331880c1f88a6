"""Whether memory caps work is tried: on a simulated card that counts either way, and with CUDA."""

from pathlib import Path

import pytest

from dragoon.app.enforcing import SimulatedAllocation
from dragoon.errors import HardwareError
from dragoon.gpu.model import Gpu, Inventory
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.occupants import Accounting, ProcessState
from dragoon.prepare.enforcement.allocating import allocate
from dragoon.prepare.enforcement.cap_probe import ALLOCATION, CAP, CapProbe
from tests.scenario.enforcement_bench import FAKE_CUDA, compiled
from tests.unit.prepare.scene import gpu

MACHINE = "dgx-h100"


class Node:
    """A simulated machine beside a folder that looks like a cgroup tree."""

    def __init__(self, root: Path) -> None:
        self.state = root / "gpus.json"
        self.gpus: NvmlGpus = open_gpus(MACHINE, self.state, node="n1", beside_driver=True)
        self.hardware = Hardware(self.state)
        self.cgroups = root / "cgroup"
        (self.cgroups / "kubepods.slice").mkdir(parents=True)
        (self.cgroups / "cgroup.controllers").write_text("cpu memory dmem\n")
        self.tries: list[tuple[Path, bool]] = []
        self.probe = CapProbe(self.gpus.limits, self.cgroups, self.allocate)

    def allocate(self, card: Gpu, cgroup: Path, size: int) -> bool:
        got = SimulatedAllocation(self.state)(card, cgroup, size)
        self.tries.append((cgroup, got))
        return got

    def ask(self) -> str:
        return self.probe(self.gpus.inventory())

    def left(self) -> list[Path]:
        return [path for path in self.cgroups.rglob("*") if path.name.startswith("dragoon")]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_cap_that_refuses_an_allocation_below_it_is_offered(node: Node) -> None:
    node.hardware.set_accounting(Accounting.DMEM)
    assert not node.ask()
    assert [got for _, got in node.tries] == [True, False], "first without the cap"
    assert {cgroup.parent.parent for cgroup, _ in node.tries} == {node.cgroups / "kubepods.slice"}
    assert node.left() == []
    assert not node.hardware.read().cards[0].caps
    assert not node.hardware.read().cards[0].processes


def test_a_driver_that_counts_each_cgroup_for_itself_is_not(node: Node) -> None:
    node.hardware.set_accounting(Accounting.MISC)
    assert "did not hold for a process in a cgroup below" in node.ask()
    assert "RmMemacctMode" in node.ask()
    assert node.left() == []


def test_an_older_driver_is_not(node: Node) -> None:
    node.hardware.set_accounting(None)
    assert "a memory cap could not be tried" in node.ask()
    assert "r615" in node.ask()
    assert node.left() == []


def test_a_tree_of_cgroup_v1_is_not(node: Node) -> None:
    (node.cgroups / "cgroup.controllers").unlink()
    assert "is no cgroup v2 tree" in node.ask()
    assert node.tries == []


def test_cards_in_mig_mode_cannot_be_tried(node: Node) -> None:
    node.hardware.set_accounting(Accounting.DMEM)
    for slot in range(len(node.gpus.inventory().gpus)):
        node.hardware.set_mig_mode(slot, enabled=True)
    assert "no GPU outside MIG mode" in node.ask()


def test_what_a_try_told_is_not_tried_again_until_the_driver_changes(node: Node) -> None:
    node.hardware.set_accounting(Accounting.DMEM)
    assert node.ask() == node.ask()
    assert len(node.tries) == 2
    node.probe(Inventory(gpus=node.gpus.inventory().gpus, driver_version="999.1"))
    assert len(node.tries) == 4


def test_a_full_card_tells_nothing_and_is_tried_again(node: Node) -> None:
    node.hardware.set_accounting(Accounting.DMEM)
    full = node.gpus.inventory().gpus[0].memory_bytes or 0
    node.hardware.run(0, ProcessState(77, "training", full - ALLOCATION // 2))
    assert "MiB free to try a memory cap with" in node.ask()
    node.hardware.end(0, 77)
    assert not node.ask()


def test_what_a_killed_probe_left_is_removed(node: Node) -> None:
    node.hardware.set_accounting(Accounting.DMEM)
    (node.cgroups / "kubepods.slice/dragoon-probe-1/leaf").mkdir(parents=True)
    assert not node.ask()
    assert node.left() == []


def test_the_cap_leaves_room_for_a_context_and_less_than_the_allocation() -> None:
    assert 512 << 20 < CAP < ALLOCATION


# CUDA itself, of which a stand-in is built here


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cgroup, and a CUDA driver that the allocating process finds."""
    compiled(FAKE_CUDA, tmp_path / "libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "driver"))
    cgroup = tmp_path / "cgroup"
    cgroup.mkdir()
    return cgroup


def test_a_process_in_the_cgroup_gets_memory_or_is_refused(
    cuda: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert allocate(gpu(0), cuda, 1000)
    assert int((cuda / "cgroup.procs").read_text()) > 1, "it moved there first"
    monkeypatch.setenv("FAKE_FREE", "999")
    assert not allocate(gpu(0), cuda, 1000)
    assert allocate(gpu(0), cuda, 999)


def test_what_is_no_refusal_of_memory_tells_nothing(
    cuda: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HardwareError, match="CUDA error 101"):
        allocate(gpu(3), cuda, 1000)
    with pytest.raises(HardwareError, match="No such file"):
        allocate(gpu(0), cuda / "nowhere", 1000)
    monkeypatch.setenv("FAKE_NO_GPU", "1")
    with pytest.raises(HardwareError, match="CUDA error 100"):
        allocate(gpu(0), cuda, 1000)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    with pytest.raises(HardwareError, match=r"libcuda\.so\.1"):
        allocate(gpu(0), cuda, 1000)
