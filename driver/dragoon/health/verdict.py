"""What is wrong with a card, and what follows from it."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.api import names
from dragoon.gpu.model import PciAddress


class Kind(enum.StrEnum):
    """What a verdict is about. The values stand in settings and metrics, and never change."""

    LOST = "lost"
    XID = "xid"
    MEMORY = "memory"
    MEMORY_PENDING = "memory-pending"
    RECOVERY = "recovery"
    FABRIC = "fabric"
    NVLINK = "nvlink"
    UNWATCHED = "unwatched"


class Effect(enum.StrEnum):
    """What a verdict does to the devices that it touches: the effects of a device taint.

    NONE is a remark: no taint, and the device counts as healthy.
    """

    NONE = "None"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


TAINT_KEYS: Final = {
    Kind.LOST: names.TAINT_LOST,
    Kind.XID: names.TAINT_XID,
    Kind.MEMORY: names.TAINT_MEMORY,
    Kind.MEMORY_PENDING: names.TAINT_MEMORY_PENDING,
    Kind.RECOVERY: names.TAINT_RECOVERY,
    Kind.FABRIC: names.TAINT_FABRIC,
    Kind.NVLINK: names.TAINT_NVLINK,
    Kind.UNWATCHED: names.TAINT_UNWATCHED,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that is wrong with a card.

    value: which of its kind, in a few words, such as the number of an XID. message: a sentence for
    people. since: Unix time in seconds. lasting: it was an event, which no question shows again.
    ailing: of a lasting one: the card was seen in need of recovery since. spared: names of the
    devices of the card that it does not touch.
    """

    kind: Kind
    value: str
    message: str
    since: float
    effect: Effect
    lasting: bool = False
    ailing: bool = False
    spared: frozenset[str] = frozenset()

    @property
    def identity(self) -> tuple[Kind, str, frozenset[str]]:
        """What makes it the same verdict at two moments."""
        return self.kind, self.value, self.spared

    @property
    def taints(self) -> bool:
        """It keeps new claims off the devices that it touches."""
        return self.effect is not Effect.NONE

    def touches(self, device: str) -> bool:
        """Whether it is about this device of its card."""
        return device not in self.spared


@dataclass(frozen=True, slots=True)
class CardHealth:
    """The verdicts of one card, the gravest first.

    uuid: of the card that they are about. links_up: NVLinks that were seen up.
    """

    uuid: str | None
    verdicts: tuple[Verdict, ...] = ()
    links_up: frozenset[int] = frozenset()

    @property
    def lasting(self) -> tuple[Verdict, ...]:
        """Those that must be remembered."""
        return tuple(verdict for verdict in self.verdicts if verdict.lasting)


Health = Mapping[PciAddress, CardHealth]
"""Every card of a node."""
