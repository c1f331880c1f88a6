"""What prepare does to GPUs: dividing them, caps on memory, time slices, behind one port.

`effects.Effects` passes these on, so that they are fault points like all others. Changes of one
card never run at the same time: callers hold its lock.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from dragoon.api.opaque_config import TimeSlice
from dragoon.errors import HardwareError, StateError
from dragoon.gpu.faults import FeatureMissingError
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.mig_memory import MemoryMigCards
from dragoon.gpu.model import MigMode, PciAddress, Placement
from dragoon.gpu.port import MemoryLimits, MigCards
from dragoon.prepare.mig_faults import MigHardware
from dragoon.prepare.toolkit import run_program

_SMI_VALUES: Final = {
    TimeSlice.DEFAULT: "0",
    TimeSlice.SHORT: "1",
    TimeSlice.MEDIUM: "2",
    TimeSlice.LONG: "3",
}
_TIMEOUT_S: Final = 10.0


class Cards(Protocol):
    """The GPUs as far as prepare changes them. All of it blocks and raises HardwareError.

    See `effects.Effects` for what each does.
    """

    @property
    def mig(self) -> MigCards: ...

    def memory_cap(self, address: PciAddress, cgroup: Path) -> int | None: ...

    def set_memory_cap(self, address: PciAddress, cgroup: Path, hard: int | None) -> None: ...

    def set_time_slice(self, uuid: str, interval: TimeSlice) -> None: ...


class UndividedCards:
    """The `MigCards` of a process that must not, or cannot, divide any."""

    def card(self, address: PciAddress) -> MigCard | None:  # noqa: ARG002 - every card
        """None of them has MIG."""
        return None

    def instances(self, address: PciAddress) -> tuple[MigInstance, ...]:  # noqa: ARG002
        """There are none."""
        return ()

    def set_mode(self, address: PciAddress, *, enabled: bool) -> MigMode:
        """Raises FeatureMissingError."""
        raise FeatureMissingError(f"GPU {address}: its MIG mode cannot be set to {enabled} here")

    def create(self, address: PciAddress, profile: str, placement: Placement) -> MigInstance:
        """Raises FeatureMissingError."""
        raise FeatureMissingError(f"GPU {address}: {profile} cannot be made at {placement} here")

    def destroy(self, address: PciAddress, identity: int, uuid: str | None) -> None:
        """There is nothing to remove."""


@dataclass(frozen=True, slots=True)
class DriverCards:
    """The real ones: caps through NVML, time slices through nvidia-smi, since NVML sets none.

    limits: None where this driver is too old for caps. mig: the same cards as they are divided.
    smi: the program, None to look on PATH. run: how a program is started.
    """

    limits: MemoryLimits | None = None
    mig: MigCards = field(default_factory=UndividedCards)
    smi: Path | None = None
    run: Callable[[Sequence[str], float], bytes] = run_program

    def memory_cap(self, address: PciAddress, cgroup: Path) -> int | None:
        """The hard limit in bytes; None without one."""
        return self._caps().get(address, cgroup).hard

    def set_memory_cap(self, address: PciAddress, cgroup: Path, hard: int | None) -> None:
        """Sets the hard limit and no soft one; the port reads it back."""
        self._caps().set(address, cgroup, MemoryLimit(hard))

    def set_time_slice(self, uuid: str, interval: TimeSlice) -> None:
        """Runs `nvidia-smi compute-policy`. Not yet run on hardware."""
        smi = self.smi or shutil.which("nvidia-smi")
        if smi is None:
            raise HardwareError(
                f"{uuid}: the time slice cannot be set: there is no nvidia-smi on PATH",
                hint="mount the driver's nvidia-smi into the plugin's container",
            )
        value = _SMI_VALUES[interval]
        self.run((str(smi), "compute-policy", "-i", uuid, f"--set-timeslice={value}"), _TIMEOUT_S)

    def _caps(self) -> MemoryLimits:
        if self.limits is None:
            raise HardwareError(
                "the memory of a cgroup cannot be capped here",
                hint="the tier cgroup needs a driver of branch r615 or newer",
            )
        return self.limits


class SimulatedCards(DriverCards):
    """Those of a simulated machine: it has caps, and no processes that could take turns."""

    def set_time_slice(self, uuid: str, interval: TimeSlice) -> None:
        """There is nothing that could be set."""


UNCHANGEABLE_CARDS: Final = DriverCards()
"""Cards without caps, and undivided."""


@dataclass(eq=False)
class MemoryCards:
    """A fake that remembers what was set; `cgroups` are those that exist."""

    cgroups: set[Path] = field(default_factory=set)
    caps: dict[tuple[PciAddress, Path], int] = field(default_factory=dict)
    time_slices: dict[str, TimeSlice] = field(default_factory=dict)
    mig: MigHardware = field(default_factory=lambda: MemoryMigCards({}))

    def memory_cap(self, address: PciAddress, cgroup: Path) -> int | None:
        """See `Cards`."""
        self._check(cgroup)
        return self.caps.get((address, cgroup))

    def set_memory_cap(self, address: PciAddress, cgroup: Path, hard: int | None) -> None:
        """See `Cards`."""
        self._check(cgroup)
        if hard is None:
            self.caps.pop((address, cgroup), None)
        else:
            self.caps[address, cgroup] = hard

    def set_time_slice(self, uuid: str, interval: TimeSlice) -> None:
        """See `Cards`."""
        if interval is TimeSlice.DEFAULT:
            self.time_slices.pop(uuid, None)
        else:
            self.time_slices[uuid] = interval

    def end_of(self, cgroup: Path) -> None:
        """The cgroup is deleted, and its caps with it."""
        self.cgroups.discard(cgroup)
        self.caps = {key: hard for key, hard in self.caps.items() if key[1] != cgroup}

    def _check(self, cgroup: Path) -> None:
        if cgroup not in self.cgroups:
            raise StateError(f"cgroup {cgroup} is not there")
