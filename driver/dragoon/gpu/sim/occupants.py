"""What may live on a simulated card: MIG instances, processes, caps. Frozen records.

serial numbers are never used twice on a machine: a handle or a UUID of an instance that is gone
never means another one.
"""

import enum
from dataclasses import dataclass

from dragoon.gpu.model import Placement


class Accounting(enum.Enum):
    """How the driver counts memory per cgroup (module option RmMemacctMode)."""

    MISC = "misc"  # each cgroup for itself: a cap does not cover its children
    DMEM = "dmem"  # the kernel's hierarchy: a cap covers everything below


@dataclass(frozen=True, slots=True)
class ComputeInstanceState:
    """One MIG device. minor is that of its capability's device file."""

    identity: int
    serial: int
    uuid: str
    slices: int
    start: int
    minor: int


@dataclass(frozen=True, slots=True)
class GpuInstanceState:
    """profile is the driver's id of it; memory slices as in `model.Placement`."""

    identity: int
    serial: int
    profile: int
    start: int
    size: int
    minor: int
    compute: tuple[ComputeInstanceState, ...] = ()

    @property
    def placement(self) -> Placement:
        return Placement(self.start, self.size)


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process that holds the card. Of an unlisted one (a monitoring agent) NVML tells nothing.

    cgroup is the full path of its folder, None where nobody asks.
    """

    pid: int
    name: str
    memory: int = 0
    gpu_instance: int | None = None
    compute_instance: int | None = None
    cgroup: str | None = None
    listed: bool = True


@dataclass(frozen=True, slots=True)
class CapState:
    """The driver's cap on a cgroup; inode tells a folder from a later one of the same name."""

    cgroup: str
    inode: int
    soft: int
    hard: int
