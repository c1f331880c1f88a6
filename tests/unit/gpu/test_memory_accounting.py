"""Caps per cgroup in the simulated driver: both ways of counting, and what a probe would see."""

from pathlib import Path
from typing import Any

import pynvml
import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.faults import FeatureMissingError
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.nvml.library import Library
from dragoon.gpu.sim.accounting import OutOfMemoryError
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.occupants import Accounting, ProcessState
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import Fault
from tests.unit.gpu.rig import Rig, Simulate

MIB = 1 << 20


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """The folder of a pod's cgroup, with one of a container in it."""
    (tmp_path / "kubepods/pod1/container").mkdir(parents=True)
    return tmp_path / "kubepods/pod1"


def allocated(machine: Rig, cgroup: Path, mib: int, pid: int = 42) -> bool:
    """Whether a process there may use so much in all."""
    try:
        machine.hardware.run(0, ProcessState(pid, "cuda", mib * MIB, cgroup=str(cgroup)))
    except OutOfMemoryError:
        return False
    return True


def capped(simulate: Simulate, mode: Accounting, cgroup: Path, mib: int) -> Rig:
    machine = simulate("l40s-4way-pcie")
    machine.hardware.set_accounting(mode)
    machine.gpus.limits.set(machine.address(0), cgroup, MemoryLimit(mib * MIB))
    return machine


@pytest.mark.parametrize(("mode", "covers"), [(Accounting.DMEM, True), (Accounting.MISC, False)])
def test_a_cap_on_a_pod_covers_its_containers_only_with_dmem(
    simulate: Simulate, pod: Path, mode: Accounting, *, covers: bool
) -> None:
    machine = capped(simulate, mode, pod, 100)
    assert allocated(machine, pod / "container", 101) is not covers
    assert allocated(machine, pod / "container", 100)
    used = machine.gpus.limits.get(machine.address(0), pod).used
    assert used == (100 * MIB if covers else 0)


@pytest.mark.parametrize("mode", list(Accounting))
def test_a_cap_refuses_the_allocation_above_it_and_keeps_the_rest(
    simulate: Simulate, pod: Path, mode: Accounting
) -> None:
    machine = capped(simulate, mode, pod, 100)
    assert allocated(machine, pod, 60)
    assert not allocated(machine, pod, 41, pid=43)
    assert not allocated(machine, pod, 101)
    assert [p.used_bytes for p in machine.gpus.processes(machine.address(0))] == [60 * MIB]
    assert allocated(machine, pod, 40, pid=43)
    assert machine.gpus.limits.get(machine.address(0), pod).used == 100 * MIB


def test_a_cap_is_nobody_elses(simulate: Simulate, pod: Path) -> None:
    machine = capped(simulate, Accounting.DMEM, pod, 100)
    other = pod.with_name("pod10")
    other.mkdir()
    assert allocated(machine, other, 40_000)
    machine.hardware.run(1, ProcessState(44, "cuda", 200 * MIB, cgroup=str(pod)))


def test_the_memory_of_the_card_is_the_last_cap(simulate: Simulate, pod: Path) -> None:
    machine = capped(simulate, Accounting.DMEM, pod, 100_000)
    total = machine.state.machine.cards[0].memory_mib
    assert total is not None
    assert not allocated(machine, pod, total + 1)
    assert allocated(machine, pod, total)


def test_caps_and_processes_end_with_a_reboot(simulate: Simulate, pod: Path) -> None:
    machine = capped(simulate, Accounting.DMEM, pod, 100)
    assert allocated(machine, pod, 50)
    machine.hardware.reboot()
    assert machine.gpus.limits.get(machine.address(0), pod) == MemoryLimit()
    assert machine.gpus.processes(machine.address(0)) == ()


def test_a_card_in_mig_mode_has_no_caps(simulate: Simulate, pod: Path) -> None:
    machine = simulate("dgx-h100")
    machine.hardware.set_accounting(Accounting.DMEM)
    machine.gpus.mig.set_mode(machine.address(0), enabled=True)
    with pytest.raises(FeatureMissingError) as caught:
        machine.gpus.limits.set(machine.address(0), pod, MemoryLimit(MIB))
    assert "not in MIG mode" in caught.value.hint


def test_a_limit_that_reads_back_differently_is_an_error(simulate: Simulate, pod: Path) -> None:
    """A driver that takes a limit and does nothing must not count as one that enforces."""
    machine = capped(simulate, Accounting.DMEM, pod, 100)
    machine.hardware.fail(Fault("nvmlDeviceSetMemoryLimits_v1", code=0))
    with pytest.raises(HardwareError, match="reads back as"):
        machine.gpus.limits.set(machine.address(0), pod, MemoryLimit(50 * MIB))


def test_the_kernel_lists_the_cgroup_of_a_process(simulate: Simulate, pod: Path) -> None:
    machine = simulate("t4")
    mounted = machine.hardware.roots.sys / "fs/cgroup/kubepods/pod1"
    machine.hardware.run(0, ProcessState(42, "cuda", MIB, cgroup=str(mounted)))
    machine.hardware.run(0, ProcessState(43, "cuda", MIB, cgroup="/sys/fs/cgroup/system.slice"))
    proc = machine.hardware.roots.proc
    assert (proc / "42/cgroup").read_text() == "0::/kubepods/pod1\n"
    assert (proc / "43/cgroup").read_text() == "0::/system.slice\n"
    machine.hardware.end(0, 42)
    assert not (proc / "42").exists()
    assert (proc / "43").exists()


def test_the_library_itself_refuses_what_it_cannot_cap(tmp_path: Path) -> None:
    def code(handle: Any, path: bytes | None) -> int:
        limits = pynvml.c_nvmlSetMemoryLimits_v1_t(softLimit=0, hardLimit=MIB)
        limits.nameSpace = path
        try:
            pynvml.nvmlDeviceSetMemoryLimits_v1(handle, limits)
        except pynvml.NVMLError as error:
            return int(error.value)
        return 0

    file = tmp_path / "machine.json"
    hardware = Hardware.installed(file, find_machine("dgx-h100"), "node")
    library = Library(SimulatedLibrary(hardware))
    with library.held():
        library.open()
        whole, other = map(pynvml.nvmlDeviceGetHandleByIndex, (0, 1))
        folder = str(tmp_path).encode()
        assert code(whole, folder) == 13  # an older driver has no such symbol
        hardware.set_accounting(Accounting.MISC)
        assert [code(whole, p) for p in (folder, b"/nowhere", b"relative", None)] == [0, 2, 2, 2]
        pynvml.nvmlDeviceSetMigMode(other, 1)
        hardware.make_by_hand(1, "1g.10gb", 0)
        mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(other, 0)
        assert [code(other, folder), code(mig, folder)] == [3, 3]
        library.shut()
