"""How commands end: exit codes, the same for every command, and what to type next."""

from typing import Final

from dragoon.errors import (
    ApiError,
    ApiForbiddenError,
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


# As with the codes, the first class that fits decides.
_NEXT: Final = (
    ((HardwareError,), "dragoon check --category host"),
    ((ApiError,), "dragoon check --category api"),
    ((KubeletError,), "dragoon check --category kubelet"),
    ((StateError,), "dragoon check --category state"),
)


def next_of(error: DragoonError, command: str) -> str:
    """What to type after this error. command: the one that failed, `dragoon explain`."""
    if isinstance(error, ApiForbiddenError):
        from dragoon.kube.rights import missing_right  # noqa: PLC0415 - not for --help

        right = missing_right(error.message)
        if right:
            return f"kubectl auth can-i {right}"
    if isinstance(error, InvalidInputError):
        return f"{command} --help"
    return next((text for kinds, text in _NEXT if isinstance(error, kinds)), "dragoon check")
