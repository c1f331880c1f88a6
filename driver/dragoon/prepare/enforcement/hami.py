"""The tier `hami`: HAMi-core, an administrator's library that is loaded into every process.

Three things keep a container to its limits, and each alone fails closed or is checked: the library
is preloaded by a file that nobody in the container can change; the limits stand in a region file
that was there before the first process; and hooks fail the start of a container in which library,
region or glibc's loader is missing, since the loader itself only warns and goes on without. The
environment says the same once more, for tools that read it. Containers see the library where it
looks for itself, and the region also where it looks when a process has lost its environment. Not
yet run with a real library on hardware.
"""

import hashlib
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from dragoon.api.enforcement import Tier
from dragoon.api.forms import MIB
from dragoon.api.opaque_config import Priority
from dragoon.errors import StateError
from dragoon.gpu.model import Inventory
from dragoon.prepare import cdi
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hooks import LIBRARY, PRELOAD, REGION, hooks, loader
from dragoon.prepare.enforcement.region import Slot
from dragoon.prepare.enforcement.tier import Container, Grant, Measures, UnenforceableError
from dragoon.prepare.paths import Paths, temporary
from dragoon.prepare.shares import CORES
from dragoon.prepare.step import BaseStep, Place
from dragoon.prepare.storing import replace_file

_READ_ONLY: Final = ("ro", "nosuid", "nodev", "bind")
_DATA: Final = ("ro", "nosuid", "nodev", "noexec", "bind")
_SHARED: Final = ("rw", "nosuid", "nodev", "noexec", "bind")
_FALLBACK_REGION: Final = "/tmp/cudevshr.cache"  # noqa: S108 - the library's own default
_REGION_NAME: Final = "usage"
# Any user of the container writes the file; nobody but root may replace it.
_FOLDER_MODE, _REGION_MODE, _DATA_MODE = 0o1777, 0o666, 0o644
_READABLE: Final = 0o444
_PRIORITIES: Final = {Priority.HIGH: 0, Priority.LOW: 1}
_MACHINES: Final = {"x86_64": 62, "aarch64": 183}  # e_machine of elf(5)
_PRELOAD_LINE: Final = f"{LIBRARY}\n".encode()
# What makes the library count devices otherwise than CUDA does, so that no limit holds.
_HARMFUL: Final = frozenset({"CUDA_VISIBLE_DEVICES"})


class Library(BaseStep, frozen=True, tag="library"):
    """The library on the node is the one that the administrator meant.

    Nothing is done about it: where it is another one, no container may start with it.
    """

    path: str
    sha256: str

    def check(self, place: Place) -> None:
        """Raises StateError when it is another one by now."""
        if not self.holds(place):
            raise StateError(
                f"{self.path} is gone or was replaced while claims use it: its checksum is not "
                f"{self.sha256}",
                hint="put the library back, or drain the node before changing it and its checksum",
            )

    def about(self, place: Place) -> str:  # noqa: ARG002 - it is where the administrator put it
        return self.path

    def holds(self, place: Place) -> bool:
        """Whether its checksum is still right."""
        data = place.effects.read(Path(self.path))
        return data is not None and _sha256(data) == self.sha256

    def apply(self, place: Place) -> None:
        """Nothing can be done about another library. Raises StateError."""
        self.check(place)

    def undo(self, place: Place) -> None:
        """Leaves it: it is the administrator's."""


class Region(BaseStep, frozen=True, tag="region"):
    """The limits of one container, in a folder of its own, and the file that preloads the library.

    Claims whose shares meet in the container plan the same region.
    """

    pod_uid: str
    container: str
    slots: tuple[Slot, ...]
    priority: int

    def check(self, place: Place) -> None:  # noqa: ARG002 - the limits alone decide
        """Raises StateError for limits that the library would not keep."""
        region.check(self.slots)

    def shared(self) -> str:
        return shared_name(f"{self.pod_uid}_{self.container}")

    def about(self, place: Place) -> str:
        return str(self._file(place.paths))

    def holds(self, place: Place) -> bool:
        """Whether a container would find these limits; what it has used stands beside them."""
        file = self._file(place.paths)
        head = place.effects.peek(file, region.HEADER_BYTES)
        return (
            head is not None
            and region.has_limits(head, self.slots)
            and place.effects.mode(file.parent) == _FOLDER_MODE
            and place.effects.read(self._preload(place.paths)) == _PRELOAD_LINE
        )

    def apply(self, place: Place) -> None:
        """A region that is right is left alone, for processes may have it mapped.

        One with other limits was changed from inside: the limits are put back where they stand.
        The draft is written outside: in its own folder a container may have put anything there.
        """
        effects, file = place.effects, self._file(place.paths)
        replace_file(effects, self._preload(place.paths), _PRELOAD_LINE, _DATA_MODE)
        effects.make_folder(file.parent, _FOLDER_MODE)
        effects.set_mode(file.parent, _FOLDER_MODE)
        head = effects.peek(file, region.HEADER_BYTES)
        if head is not None and region.is_region(head):
            if not region.has_limits(head, self.slots):
                effects.patch(file, region.LIMITS_AT, region.limits(self.slots))
            return
        draft = temporary(file.parent)
        effects.write(draft, region.build(self.slots, priority=self.priority), _REGION_MODE)
        effects.rename(draft, file)

    def undo(self, place: Place) -> None:
        """Removes all of it; a process that still has the file mapped is not disturbed."""
        remove_region(place.effects, place.paths, self._file(place.paths).parent.name)

    def _file(self, paths: Paths) -> Path:
        return region_file(paths, self.pod_uid, self.container)

    def _preload(self, paths: Paths) -> Path:
        return paths.preload(self.pod_uid, self.container)


def shared_name(name: str) -> str:
    """What the claims of one container share: its region, by the name `<pod UID>_<container>`."""
    return f"region/{name}"


def remove_region(effects: Effects, paths: Paths, name: str) -> None:
    """Removes what is there of the region `<pod UID>_<container>`, drafts included."""
    for found in effects.names(paths.region_folder):
        path = paths.region_folder / found
        if paths.region_of(path) == name:
            (effects.remove_tree if found == name else effects.remove)(path)


def region_file(paths: Paths, pod_uid: str, container: str) -> Path:
    """Where the limits and the usage of a container stand on the node."""
    return paths.region(pod_uid, container) / _REGION_NAME


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
        found = _sha256(data)
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
        folder = self.paths.region(pod_uid, container.name)
        preload = self.paths.preload(pod_uid, container.name)
        return cdi.Edits(
            env=tuple(_environment(slots, container.priority)),
            mounts=(
                cdi.Mount(str(self.library), LIBRARY, _READ_ONLY),
                cdi.Mount(str(preload), PRELOAD, _DATA),
                cdi.Mount(str(folder), str(Path(REGION).parent), _SHARED),
                cdi.Mount(str(folder / _REGION_NAME), _FALLBACK_REGION, _SHARED),
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


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
