"""Exit codes: part of the interface, the same for every command."""

from typing import Final

from dragoon.errors import (
    ApiError,
    ClaimError,
    DragoonError,
    HardwareError,
    InvalidInputError,
    KubeletError,
    StateError,
    UnsupportedError,
)

FINE: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
INTERNAL: Final = 4
INTERRUPTED: Final = 130

MEANINGS: Final = {
    FINE: "fine",
    FINDINGS: "something was found: a degraded node, a claim that cannot be met",
    USAGE: "wrong usage: a flag, a config file, an input",
    UNREACHABLE: "a needed source cannot be reached: driver, API server, kubelet, state folder",
    INTERNAL: "an internal fault of Dragoon",
    INTERRUPTED: "interrupted",
}

# The first class that fits decides.
_CODES: Final = (
    ((InvalidInputError, UnsupportedError), USAGE),
    ((HardwareError, ApiError, KubeletError, StateError), UNREACHABLE),
    ((ClaimError,), FINDINGS),
)


def code_of(error: DragoonError) -> int:
    """The exit code of a command that ends with this error."""
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), INTERNAL)
