"""The tier `hami`: HAMi-core, an administrator's library that is loaded into every process.

Three things keep a container to its limits, and each alone fails closed or is checked: the library
is preloaded by a file that nobody in the container can change; the limits stand in a region file
that was there before the first process; and hooks fail the start of a container in which library,
region or glibc's loader is missing, since the loader itself only warns and goes on without. The
environment says the same once more, for tools that read it. Containers see the library where it
looks for itself, and the region also where it looks when a process has lost its environment. Not
yet run with a real library on hardware.
"""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from dragoon.api.enforcement import Tier
from dragoon.api.forms import MIB
from dragoon.api.opaque_config import Priority
from dragoon.gpu.model import Inventory
from dragoon.prepare import cdi
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.errors import UnenforceableError
from dragoon.prepare.enforcement.hami_steps import Library, Region, checksum, region_file
from dragoon.prepare.enforcement.hooks import LIBRARY, PRELOAD, REGION, hooks, loader
from dragoon.prepare.enforcement.region import Slot
from dragoon.prepare.enforcement.tier import Container, Grant, Measures
from dragoon.prepare.paths import Paths
from dragoon.prepare.shares import CORES

_READ_ONLY: Final = ("ro", "nosuid", "nodev", "bind")
_DATA: Final = ("ro", "nosuid", "nodev", "noexec", "bind")
_SHARED: Final = ("rw", "nosuid", "nodev", "noexec", "bind")
_FALLBACK_REGION: Final = "/tmp/cudevshr.cache"  # noqa: S108 - the library's own default
_READABLE: Final = 0o444
_PRIORITIES: Final = {Priority.HIGH: 0, Priority.LOW: 1}
_MACHINES: Final = {"x86_64": 62, "aarch64": 183}  # e_machine of elf(5)
# What makes the library count devices otherwise than CUDA does, so that no limit holds.
_HARMFUL: Final = frozenset({"CUDA_VISIBLE_DEVICES"})


@dataclass(frozen=True, slots=True)
class Hami:
    """library: where the node has it; sha256: its checksum in hexadecimal.

    Empty: not configured.
    """

    paths: Paths
    library: Path | None = None
    sha256: str = ""

    name: ClassVar[Tier] = Tier.HAMI
    needs_pod: ClassVar[bool] = True

    def probe(self, inventory: Inventory) -> str:  # noqa: ARG002 - the library alone decides
        """Whether the library is there, is the one that was meant, and loads for everybody."""
        if self.library is None:
            return "no library is configured: set hamiLibrary and hamiSha256"
        try:
            data = self.library.read_bytes()
            mode = self.library.stat().st_mode
        except OSError as error:
            return f"{self.library}: {error.strerror}"
        return next(self._problems(data, mode), "")

    def plan(self, grant: Grant) -> Measures:
        """Library, region, preload file and hooks for the container that sees the share."""
        pod, container = grant.pod, grant.container
        if pod is None or container is None:
            return Measures()
        _check(grant, container)
        slots = tuple(_slots(container))
        steps = (
            Library(str(self.library), self.sha256),
            Region(pod.uid, container.name, slots, _PRIORITIES[container.priority]),
        )
        return Measures(steps, self._edits(pod.uid, container, slots))

    def _problems(self, data: bytes, mode: int) -> Iterator[str]:
        found = checksum(data)
        machine = platform.machine()
        if found != self.sha256:
            yield f"{self.library}: found sha256 {found}, hamiSha256 is {self.sha256}"
        if data[:5] != b"\x7fELF\x02" or data[18:20] != _MACHINES.get(machine, 0).to_bytes(
            2, "little"
        ):
            yield f"{self.library}: is no 64-bit shared library for {machine}"
        if mode & _READABLE != _READABLE:
            yield f"{self.library}: mode {mode & 0o777:04o} does not let every user read it"

    def _edits(self, pod_uid: str, container: Container, slots: tuple[Slot, ...]) -> cdi.Edits:
        usage = region_file(self.paths, pod_uid, container.name)
        preload = self.paths.preload(pod_uid, container.name)
        return cdi.Edits(
            env=tuple(_environment(slots, container.priority)),
            mounts=(
                cdi.Mount(str(self.library), LIBRARY, _READ_ONLY),
                cdi.Mount(str(preload), PRELOAD, _DATA),
                cdi.Mount(str(usage.parent), str(Path(REGION).parent), _SHARED),
                cdi.Mount(str(usage), _FALLBACK_REGION, _SHARED),
            ),
            hooks=hooks(loader(platform.machine()), pod_uid),
        )


def _check(grant: Grant, container: Container) -> None:
    where = f"claim {grant.claim}: container {container.name}"
    if len(container.limits) > region.MAX_DEVICES:
        raise UnenforceableError(
            f"{where}: sees {len(container.limits)} GPUs, the tier hami limits at most "
            f"{region.MAX_DEVICES}",
            hint="spread the GPUs over several containers",
        )
    harmful = sorted(_HARMFUL & container.variables)
    if harmful:
        raise UnenforceableError(
            f"{where}: sets {harmful[0]}, with which the tier hami keeps no limit",
            hint=f"remove {harmful[0]} from the container: it sees only its own GPUs anyway",
        )


def _slots(container: Container) -> Iterator[Slot]:
    for limit in container.limits:
        yield Slot(limit.gpu.uuid, limit.memory // MIB * MIB, limit.cores or CORES)


def _environment(slots: tuple[Slot, ...], priority: Priority) -> Iterator[str]:
    """Numbers that the library cannot misread: it takes `4Gi` for four bytes (case C23)."""
    yield f"CUDA_DEVICE_MEMORY_SHARED_CACHE={REGION}"
    yield "CUDA_DEVICE_ORDER=PCI_BUS_ID"
    for number, slot in enumerate(slots):
        yield f"CUDA_DEVICE_MEMORY_LIMIT_{number}={slot.memory // MIB}m"
        yield f"CUDA_DEVICE_SM_LIMIT_{number}={slot.cores}"
    throttled = any(slot.cores < CORES for slot in slots)
    yield f"GPU_CORE_UTILIZATION_POLICY={'FORCE' if throttled else 'DISABLE'}"
    yield f"CUDA_TASK_PRIORITY={_PRIORITIES[priority]}"
    yield "LIBCUDA_LOG_LEVEL=0"
