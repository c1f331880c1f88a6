"""What Dragoon knows of a card that can be divided: its MIG instances, and who uses it.

Read on demand (`port.MigCards`), never by the look at whole GPUs. Frozen data; ids and minor
numbers hold only until the next change of the mode, reset or reboot. Sizes are bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dragoon.errors import InvalidInputError
from dragoon.gpu.model import MigMode, MigProfile, PciAddress, Placement


@dataclass(frozen=True, slots=True)
class MigCard:
    """A card that has MIG, and what it offers, ordered by NVML's number of the profile.

    resetless: the mode changes without a reset of the card (Hopper and later), and is off again
    after a reboot. Otherwise (Ampere) it takes a reset, and stays over reboots.
    """

    address: PciAddress
    uuid: str
    mode: MigMode
    resetless: bool
    profiles: tuple[MigProfile, ...]

    def profile(self, name: str) -> MigProfile:
        """The profile with that name. Raises InvalidInputError that lists this card's names."""
        return find_profile(self.profiles, name, str(self.address))


def find_profile(profiles: Iterable[MigProfile], name: str, card: str) -> MigProfile:
    """The profile of that name; `card` names the card in the error.

    Raises InvalidInputError, listing the names of the card, when it has none.
    """
    known = {profile.name: profile for profile in profiles}
    if name in known:
        return known[name]
    allowed = ", ".join(known) or "none: it has no MIG"
    raise InvalidInputError(f"MIG profile of GPU {card}: found {name!r}, allowed: {allowed}")


@dataclass(frozen=True, slots=True)
class CapabilityNode:
    """The device file that gives access to one instance (nvidia-capabilities).

    path is where the file is on the host, `/dev/nvidia-caps/nvidia-cap<minor>`; exists says
    whether it is there already: the driver makes some only when they are first used. major is
    None where /proc/devices does not list the driver.
    """

    path: str
    minor: int
    major: int | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class ComputeInstance:
    """A compute instance: with its GPU instance it is one MIG device, which has the UUID."""

    identity: int
    uuid: str
    slices: int
    node: CapabilityNode | None = None


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A GPU instance and its compute instances. Without any it still blocks its placement.

    identity is the GPU instance's id; parent and parent_uuid name the card, parent_minor its device
    file. node is None where the kernel does not list the instance's capability.
    """

    parent: PciAddress
    parent_uuid: str
    parent_minor: int | None
    profile: MigProfile
    placement: Placement
    identity: int
    compute: tuple[ComputeInstance, ...] = ()
    node: CapabilityNode | None = None

    @property
    def uuid(self) -> str | None:
        """The UUID of the only MIG device in it; None when there is none, or several."""
        return self.compute[0].uuid if len(self.compute) == 1 else None

    @property
    def is_whole(self) -> bool:
        """One compute instance has all its slices: how Dragoon makes them."""
        return len(self.compute) == 1 and self.compute[0].slices == self.profile.slices

    def __str__(self) -> str:
        """For messages: `GPU instance 7 (1g.5gb at 0:1, MIG-...)`."""
        uuids = ", ".join(one.uuid for one in self.compute) or "no compute instance"
        return f"GPU instance {self.identity} ({self.profile.name} at {self.placement}, {uuids})"


def occupied_by(instances: Iterable[MigInstance], placement: Placement) -> tuple[MigInstance, ...]:
    """The instances that take a part of the placement. Pure."""
    return tuple(one for one in instances if one.placement.overlaps(placement))


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses a card (nvmlDeviceGetComputeRunningProcesses_v3 and its siblings).

    pid is the host's; used_bytes is None where the driver does not tell; the instance ids are None
    outside MIG mode; name is the kernel's short name, None when the process has ended.
    """

    pid: int
    used_bytes: int | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    name: str | None = None

    def __str__(self) -> str:
        """For messages: `python (pid 4711)`."""
        return f"{self.name or 'process'} (pid {self.pid})"
