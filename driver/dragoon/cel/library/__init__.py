"""The functions of CEL that Kubernetes gives to device selectors, one module per library.

May import dragoon.quantity, dragoon.semver and the values, types and functions of dragoon.cel.
An implementation gets values of the classes that its signature names, and raises
ExpressionFailedError. It has no effects.

UNSUPPORTED says which functions Kubernetes has and Dragoon does not: using one is an error of its
own kind, because kube-scheduler would evaluate it.
"""

from typing import Final

from dragoon.cel.functions import Library, merged
from dragoon.cel.library import (
    addresses,
    formats,
    formatting,
    kubernetes,
    lists,
    operators,
    optionals,
    standard,
    strings,
    times,
    urls,
)

FUNCTIONS: Final[Library] = merged(
    module.FUNCTIONS
    for module in (
        *(operators, standard, strings, lists, optionals, kubernetes),
        *(addresses, formats, formatting, times, urls),
    )
)

_NO_TYPES: Final = (
    "Dragoon does not compute with types; Kubernetes refuses type() in new selectors too, "
    "as it cannot bound their cost"
)
_NO_AUTHORIZATION: Final = "Dragoon does not ask an authorizer, and a device selector has none"
_NO_ZONES: Final = "Dragoon does not know time zones, leave the zone out for UTC"

UNSUPPORTED: Final[dict[str, str]] = {
    "type": _NO_TYPES,
    **dict.fromkeys(
        (
            *("fieldSelector", "labelSelector", "group", "serviceAccount", "resource"),
            *("subresource", "namespace", "name", "check", "allowed", "reason", "errored"),
            *("error", "path"),
        ),
        _NO_AUTHORIZATION,
    ),
}
"""Functions that Kubernetes has and Dragoon does not, with the reason."""

UNSUPPORTED_WITH: Final[dict[tuple[str, int], str]] = {
    (name, 2): _NO_ZONES for name in (*times.OF_TIMESTAMPS, *times.OF_BOTH)
}
"""The same for functions that it has with another number of arguments, the target included."""
