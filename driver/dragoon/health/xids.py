"""What the number of an XID means for the card that raised it. Pure.

Source: NVIDIA's public catalogue of XID errors (docs.nvidia.com/deploy/xid-errors) for what is to be
done after each; nvidia-dra.md 2.8 for those that another driver of this kind lets pass.
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


_APPLICATION: Final = frozenset({8, 13, 31, 32, 37, 43, 45, 66, 68, 69, 109, 126, 127, 137})
# Told; what they did to the card is asked of the card: pending or failed row remaps, links, the
# recovery action (154).
_REMARK: Final = frozenset({63, 74, 92, 94, 121, 154, 156})
_FATAL: Final = {
    46: "the GPU stopped processing",
    48: "double-bit ECC error",
    62: "an internal controller halted",
    64: "a memory row or page could not be retired",
    79: "the GPU has fallen off the bus",
    95: "uncontained memory error",
    119: "the GPU's system processor does not answer",
    120: "error of the GPU's system processor",
    123: "a power management request failed",
    136: "the links could not be trained",
    140: "unrecovered ECC error",
    143: "the GPU could not be initialised",
    155: "NVLink failure",
    157: "a resource could not be retired",
    158: "fatal time-out of the GPU",
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
