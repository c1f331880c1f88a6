"""The functions of CEL that Kubernetes gives to device selectors, one module per library.

May import dragoon.quantity, dragoon.semver and the values, types and functions of dragoon.cel.
An implementation gets values of the classes that its signature names, and raises
ExpressionFailedError. It has no effects.

UNSUPPORTED names functions that Kubernetes has and Dragoon does not: using one is an error of its
own kind, because kube-scheduler would evaluate it.
"""

from typing import Final

from dragoon.cel.functions import Library, merged
from dragoon.cel.library import kubernetes, lists, operators, optionals, standard, strings

FUNCTIONS: Final[Library] = merged(
    module.FUNCTIONS for module in (operators, standard, strings, lists, optionals, kubernetes)
)

UNSUPPORTED: Final = frozenset(
    (
        # time
        *("timestamp", "duration", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth"),
        *("getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds"),
        # types as values
        "type",
        # strings and formats
        *("format", "format.named", "validate", "strings.quote"),
        # addresses
        *("ip", "isIP", "ip.isCanonical", "cidr", "isCIDR", "family", "isUnspecified"),
        *("isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
        *("containsIP", "containsCIDR", "masked", "prefixLength"),
        *("url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"),
        "getQuery",
        # authorization
        *("fieldSelector", "labelSelector", "group", "serviceAccount", "resource", "subresource"),
        *("namespace", "name", "check", "allowed", "reason", "errored", "error", "path"),
    )
)
