"""How the rest of Dragoon asks about GPUs, and changes them.

| port | what | real | fake |
|---|---|---|---|
| `Gpus` | the look at whole GPUs | `gpu.nvml.NvmlGpus` | `FixedGpus` here |
| `MigCards` | dividing a card | `NvmlGpus.mig` | `gpu.mig_memory.MemoryMigCards` |
| `Processes` | who uses a card | `NvmlGpus.processes` | `gpu.mig_memory.MemoryMigCards` |
| `MemoryLimits` | the driver's caps per cgroup | `NvmlGpus.limits` | `gpu.limits_memory.MemoryCaps` |
| `Conditions` | how well the cards are | `NvmlGpus.conditions` | `gpu.condition_memory.MemoryConditions` |
| `GpuEvents` | what they raise | `NvmlGpus.events` | `gpu.condition_memory.MemoryEvents` |

The calls of all ports block (NVML may take seconds on a busy or sick card): never call them on the
event loop. They may be called from several threads. Cards are named by PCI address.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dragoon.gpu.condition import Condition, Polled
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.mig import GpuProcess, MigCard, MigInstance
from dragoon.gpu.model import Inventory, MigMode, PciAddress, Placement


class Gpus(Protocol):
    """The GPUs of this node."""

    def inventory(self) -> Inventory:
        """Looks at all cards now.

        A card that fails, or hangs, is in `lost` or has `problems`; it never costs the others. While
        no card at all answers the look does not end. Raises DriverMissingError when there is no
        driver, HardwareError when the library as a whole fails.
        """
        ...

    def close(self) -> None:
        """Releases the library. Idempotent."""
        ...


class MigCards(Protocol):
    """Cards that can be divided.

    Every method raises DeviceLostError for a card that is gone or answers nothing, and otherwise
    the errors of `gpu.faults`. Nothing is cached: handles, ids, minors and UUIDs are asked for
    anew by every call. Changes of one card must not run at the same time: the caller locks per
    card. Different cards may change at once.
    """

    def card(self, address: PciAddress) -> MigCard | None:
        """Mode and profiles with placements, from the card itself; None when it has no MIG."""
        ...

    def instances(self, address: PciAddress) -> tuple[MigInstance, ...]:
        """Every GPU instance, with or without a compute instance, whoever made it, by placement.

        Empty outside MIG mode, and on cards without MIG.
        """
        ...

    def set_mode(self, address: PciAddress, *, enabled: bool) -> MigMode:
        """Changes the MIG mode and reads it back. Idempotent.

        A change that is refused leaves nothing pending. Raises FeatureMissingError,
        CardInUseError (names the processes or instances), ResetRequiredError.
        """
        ...

    def create(self, address: PciAddress, profile: str, placement: Placement) -> MigInstance:
        """Makes a GPU instance there, and one compute instance that fills it; returns it as seen.

        What was made is taken back when it does not become whole. Raises InvalidInputError for a
        profile or placement that the card does not have (lists those it has), PlacementTakenError,
        FeatureMissingError while the card is not in MIG mode.
        """
        ...

    def destroy(self, address: PciAddress, identity: int, uuid: str | None) -> None:
        """Removes the GPU instance with that id and its compute instance, if it is the one meant.

        uuid is that of its only MIG device; None means that it has no compute instance. One that
        is gone already is fine. Raises InstanceChangedError, and touches nothing, when it is
        another one; CardInUseError when it is used. The compute instance may then be gone and the
        GPU instance still be there: look again, and ask with None.
        """
        ...


class Processes(Protocol):
    """Who uses a card."""

    def __call__(self, address: PciAddress) -> tuple[GpuProcess, ...]:
        """Every process that the driver lists for the card and its MIG devices, by pid.

        Raises DeviceLostError, HardwareError.
        """
        ...


class MemoryLimits(Protocol):
    """The driver's own caps on GPU memory per cgroup (r615 and later, cgroup v2).

    cgroup is the full path of its folder. All methods raise DeviceLostError,
    FeatureMissingError (old driver, or a card in MIG mode), StateError for a cgroup that is not
    there.
    """

    def get(self, address: PciAddress, cgroup: Path) -> MemoryLimit:
        """The limit and the use of the cgroup on that card."""
        ...

    def set(self, address: PciAddress, cgroup: Path, limit: MemoryLimit) -> MemoryLimit:
        """Sets the limit, and returns what was read back. Whoever deletes the cgroup clears it.

        Raises HardwareError when it reads back differently.
        """
        ...


class Conditions(Protocol):
    """How well the cards are."""

    def __call__(self) -> Mapping[PciAddress, Condition]:
        """Asks every card now; one that answers nothing is absent, and costs nobody else.

        One that has not answered in time is `silent`; while none at all answers it does not end.
        Raises DriverMissingError, HardwareError when the library as a whole fails.
        """
        ...


class GpuEvents(Protocol):
    """What cards raise by themselves. One caller at a time."""

    def poll(self) -> Polled:
        """What was raised since the call before; returns within a fraction of a second.

        Listening begins with the first call. A new opening of the library begins anew, and says so,
        and so does a card that is back; then it may wait for a card that hangs, which is not watched.
        Raises DriverMissingError, HardwareError when the library as a whole fails.
        """
        ...


@dataclass
class FixedGpus:
    """A fake that answers with what it was given; assign `found` to change the hardware."""

    found: Inventory

    def inventory(self) -> Inventory:
        return self.found

    def close(self) -> None:
        """Nothing to release."""
