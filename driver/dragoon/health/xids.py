"""What the number of an XID means for the card that raised it. Pure.

Source: the immediate action in NVIDIA's catalogue of XIDs for Ampere and newer
(docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html). 109 differs: the catalogue wants a
reset, NVIDIA's own drivers for Kubernetes let it pass, for applications cause
it.
"""

import enum
from typing import Final

from dragoon.health.settings import HealthSettings


class Meaning(enum.Enum):
    """What follows from an XID."""

    APPLICATION = "an application caused it"
    REMARK = "the card works on"
    FATAL = "the card must be reset"
    UNKNOWN = "not known to this version"


_APPLICATION: Final = frozenset(
    {8, 11, 13, 25, 31, 32, 39, 40, 41, 43, 45, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80}
    | {82, 83, 84, 85, 86, 88, 89, *range(96, 106), 109, *range(126, 136), 137, 139}
)
# Told; what they did to the card is asked of the card: pending or failed replacements of memory (63,
# 94, 156, 157), links (74, 144 to 150, 155), and the recovery action, which 154 announces. 171 and
# 172 are details of a 48.
_REMARK: Final = frozenset(
    {14, 37, 38, 44, 63, 66, 67, 74, 92, 93, 94, 106, 107, 108, 121, 141, *range(144, 151)}
    | {152, 153, 154, 155, 156, 157, 160, 161, 162, 163, 164, 165, 171, 172}
)
_FATAL: Final = {
    46: "the GPU stopped processing",
    48: "double-bit ECC error",
    62: "an internal controller halted",
    64: "a memory row or page could not be retired",
    79: "the GPU has fallen off the bus",
    95: "uncontained memory error",
    110: "security fault",
    119: "the GPU's system processor does not answer",
    120: "error of the GPU's system processor",
    136: "the links could not be trained",
    140: "unrecovered ECC error",
    143: "the GPU could not be initialised",
    158: "fatal time-out of the GPU",
    167: "fatal time-out of PCI Express",
    169: "an internal controller halted",
}
INSTANCE_SCOPED: Final = frozenset({48})
"""What an XID about one MIG instance touches ends with the memory slices of the instance; any other
fatal one is about what all instances of a card share."""


def meaning(xid: int, settings: HealthSettings) -> Meaning:
    """What follows; an administrator's word comes first."""
    if xid in settings.harmless or xid in _APPLICATION:
        return Meaning.APPLICATION
    if xid in _FATAL:
        return Meaning.FATAL
    return Meaning.REMARK if xid in _REMARK else Meaning.UNKNOWN


def condemns(xid: int, settings: HealthSettings) -> bool:
    """Whether the card gets a verdict.

    Unknown XIDs give one unless the settings trust them: fail closed.
    """
    found = meaning(xid, settings)
    return found is Meaning.FATAL or (found is Meaning.UNKNOWN and not settings.trust_unknown)


def describe(xid: int) -> str:
    """For messages: `XID 79: the GPU has fallen off the bus`."""
    return f"XID {xid}: {_FATAL.get(xid, 'not known to this version of Dragoon')}"
