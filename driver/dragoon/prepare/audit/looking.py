"""Looking at the processes of this node's GPUs, and where each of them is. Blocks."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dragoon.gpu.mig import GpuProcess
from dragoon.gpu.model import PciAddress
from dragoon.gpu.port import MigCards, Processes
from dragoon.prepare.audit.whereabouts import PodPlace, pod_place
from dragoon.prepare.enforcement.cap_probe import PREFIX


@dataclass(frozen=True, slots=True)
class Sighting:
    """A process that uses a card now.

    mig_uuid: the MIG device in which it runs, None outside MIG mode. started: clock ticks after
    boot, which with its pid tells it from every other one. inner_pid: its pid as its container
    sees it. place: None for a process of the host.
    """

    card: PciAddress
    process: GpuProcess
    started: int = 0
    inner_pid: int | None = None
    mig_uuid: str | None = None
    place: PodPlace | None = None


def look(
    card: PciAddress, processes: Processes, mig: MigCards, proc_root: Path
) -> tuple[Sighting, ...]:
    """The processes of a card. Raises HardwareError.

    Those that have ended by now, and those of our own probe of caps, are left out.
    """
    return tuple(_sighted(card, users(card, processes, mig), proc_root))


User = tuple[GpuProcess, str | None]
"""A process, and the UUID of the MIG device in which it runs, None outside MIG mode."""


def users(card: PciAddress, processes: Processes, mig: MigCards) -> tuple[User, ...]:
    """The processes of a card. Raises HardwareError.

    Those whose instance was removed while they were asked for are left out.
    """
    listed = processes(card)
    if all(one.gpu_instance is None for one in listed):
        return tuple((one, None) for one in listed)
    devices = {
        (instance.identity, one.identity): one.uuid
        for instance in mig.instances(card)
        for one in instance.compute
    }
    found = ((one, (one.gpu_instance, one.compute_instance)) for one in listed)
    return tuple((one, devices[place]) for one, place in found if place in devices)


def _sighted(card: PciAddress, found: Iterable[User], proc_root: Path) -> Iterator[Sighting]:
    for process, uuid in found:
        folder = proc_root / str(process.pid)
        with suppress(OSError, ValueError, IndexError):
            cgroup = _text(folder / "cgroup")
            if f"/{PREFIX}" not in cgroup:
                yield Sighting(
                    card, process, _started(folder), _inner_pid(folder), uuid, pod_place(cgroup)
                )


def _started(folder: Path) -> int:
    """Field 22 of proc_pid_stat(5); the name before it may hold anything, ")" included."""
    return int(_text(folder / "stat").rpartition(")")[2].split()[19])


def _inner_pid(folder: Path) -> int | None:
    """The last pid of NSpid in proc_pid_status(5): that of the innermost namespace."""
    for line in _text(folder / "status").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return None


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
