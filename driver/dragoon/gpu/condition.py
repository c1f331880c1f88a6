"""How well a card is: what it says of itself when asked, and the events that it raises.

Read on demand (`port.Conditions`, `port.GpuEvents`), never by the look at whole GPUs. Frozen data;
what it means for claims is decided in `dragoon.health`.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dragoon.gpu.model import PciAddress


class Recovery(enum.Enum):
    """What the driver says must be done before the card is well again (r565 and later).

    Source: NVML_GPU_RECOVERY_ACTION_*, by nvmlDeviceGetFieldValues of field 230.
    """

    NONE = "none"
    GPU_RESET = "GPU reset"
    NODE_REBOOT = "node reboot"
    DRAIN_P2P = "drain peer-to-peer work"
    DRAIN_AND_RESET = "drain and reset"
    RECOVER_IMEX = "recover the IMEX domain"
    BUS_RESET = "bus reset"
    SYSTEM_REBOOT = "system reboot"
    OTHER = "an action that this version does not know"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a card says about its own health now; None where it does not say it.

    uncorrected: memory errors that could not be corrected since the driver was loaded, contained
    ones included. remap_pending, remap_failed: of memory rows (Ampere and later). pages_pending: of
    memory pages (before Ampere). repair_pending: of a channel or a TPC. Pending is what a reset of
    the card completes. problems are the questions it answered with an error, in words. silent: why
    nothing of this is known now, else empty: the card has not answered in time.
    """

    recovery: Recovery | None = None
    uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    pages_pending: bool | None = None
    repair_pending: bool | None = None
    problems: tuple[str, ...] = ()
    silent: str = ""

    def after(self, before: "Condition | None") -> "Condition":
        """What stands: of a card that is silent, what it said before."""
        return replace(before, silent=self.silent) if before and self.silent else self


class EventKind(enum.Enum):
    """What an event is about (nvmlEventType*)."""

    XID = "xid"
    DOUBLE_BIT_ECC = "double-bit ECC error"
    RETIREMENT = "memory was retired"
    RETIREMENT_FAILED = "memory could not be retired"
    POISON = "poison error"
    FATAL_POISON = "fatal poison error"
    UNAVAILABLE = "the GPU is unavailable"
    RECOVERY = "the recovery action has changed"


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """One event. address is None where nothing tells whose it is.

    number: of an XID. gpu_instance, compute_instance: ids of the MIG instance that it is about,
    None for the whole card.
    """

    kind: EventKind
    address: PciAddress | None
    number: int = 0
    gpu_instance: int | None = None
    compute_instance: int | None = None

    def __str__(self) -> str:
        """For messages: `XID 79`."""
        return f"XID {self.number}" if self.kind is EventKind.XID else self.kind.value


@dataclass(frozen=True, slots=True)
class Polled:
    """The answer of one look for events, oldest first.

    renewed: events before now may have been missed: ask for conditions anew. unwatched: cards that
    raise no events for us, and why. lost: the driver says that some card is gone, not which.
    """

    events: tuple[GpuEvent, ...] = ()
    renewed: bool = False
    unwatched: Mapping[PciAddress, str] = field(default_factory=dict)
    lost: bool = False
