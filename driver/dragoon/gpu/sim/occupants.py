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

    cgroup is the full path of its folder, None where nobody asks. started: clock ticks after boot.
    inner_pid: its pid as its container sees it, None where that is the host's.
    """

    pid: int
    name: str
    memory: int = 0
    gpu_instance: int | None = None
    compute_instance: int | None = None
    cgroup: str | None = None
    listed: bool = True
    started: int = 0
    inner_pid: int | None = None


@dataclass(frozen=True, slots=True)
class CapState:
    """The driver's cap on a cgroup; inode tells a folder from a later one of the same name."""

    cgroup: str
    inode: int
    soft: int
    hard: int


@dataclass(frozen=True, slots=True)
class ConditionState:
    """What a card answers about its own health; None where it does not say it.

    recovery is NVML_GPU_RECOVERY_ACTION_*; uncorrected counts memory errors.
    """

    recovery: int | None = None
    uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    pages_pending: bool | None = None
    repair_pending: bool | None = None

    def after_reset(self) -> "ConditionState":
        """A reset completes what is pending, and counts anew; broken memory stays broken."""
        return ConditionState(
            recovery=None if self.recovery is None else 0,
            uncorrected=None if self.uncorrected is None else 0,
            remap_pending=None if self.remap_pending is None else False,
            remap_failed=self.remap_failed,
            pages_pending=None if self.pages_pending is None else False,
            repair_pending=None if self.repair_pending is None else False,
        )
