"""How commands end: exit codes, the same for every command, and what to type next."""

import re
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


# As RBAC's authorizer words it in the Status of a 403 (k8s.io/apiserver, responsewriters).
_CANNOT: Final = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)

# As with the codes, the first class that fits decides.
_NEXT: Final = (
    ((HardwareError,), "dragoon check --category host"),
    ((ApiError,), "dragoon check --category api"),
    ((KubeletError,), "dragoon check --category kubelet"),
    ((StateError,), "dragoon check --category state"),
)


def missing_right(message: str) -> str:
    """The right that a refusal of the API server is about: `list resourceslices.resource.k8s.io`.

    With ` -n NAMESPACE` where it is missing in one. Empty for any other text.
    """
    found = _CANNOT.search(message)
    if found is None:
        return ""
    target = ".".join(filter(None, (found["resource"], found["group"])))
    inside = f" -n {found['namespace']}" if found["namespace"] else ""
    return f"{found['verb']} {target}{inside}"


def next_of(error: DragoonError, command: str) -> str:
    """What to type after this error. command: the one that failed, `dragoon explain`."""
    right = missing_right(error.message) if isinstance(error, ApiForbiddenError) else ""
    if right:
        return f"kubectl auth can-i {right}"
    if isinstance(error, InvalidInputError):
        return f"{command} --help"
    return next((text for kinds, text in _NEXT if isinstance(error, kinds)), "dragoon check")
