"""What an attempt came to, written as short as the cases expect it.

One line per claim: `request=pool/device` for each device, with `B:` before the pool where the
driver is B, and behind it `!` for admin access, `~N` for N tolerations, `?x` for a binding condition,
`#` and `{amounts}` for a share. Then `@where` unless the claim is for node n1 alone, and each
configuration as `class:text` or `claim:text`, with `[requests]` where it is not for all.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dragoon.allocator import Allocated, Answer, Kind
from tests.conformance.notation import B

Raw = Mapping[str, Any]

ERRORS = (
    ("class", "there is no DeviceClass"),
    ("count", "devices, a claim can have"),
    ("constraint", "the constraint on .* does not hold"),
    ("all", "asks for all devices"),
    ("selector", "selector [0-9]+|attribute"),
    ("node", "node selector"),
    ("capacity", "capacity|milli|64 bits"),
)
"""Classes of errors that end an attempt, by what the first sentence that matches says."""


def outcome(answer: Answer) -> list[str] | str:
    """The lines of an allocation, else `nothing` or the class of the error."""
    if isinstance(answer, Allocated):
        return written(answer.allocations)
    if answer.kind is Kind.NO_FIT:
        return "nothing"
    return f"{error_class(answer.message, ERRORS)} error"


def error_class(message: str, known: Sequence[tuple[str, str]]) -> str:
    """The class of an error by its message."""
    found = (name for name, pattern in known if re.search(pattern, message))
    return next(found, f"unknown ({message})")


def written(allocations: Sequence[Raw]) -> list[str]:
    """The line of each allocation."""
    return [" ".join(_parts(one)) for one in allocations]


def _parts(allocation: Raw) -> list[str]:
    devices = allocation.get("devices") or {}
    return [
        *map(_result, devices.get("results") or ()),
        *_where(allocation.get("nodeSelector")),
        *map(_config, devices.get("config") or ()),
    ]


def _result(raw: Raw) -> str:
    driver = "B:" if raw["driver"] == B else ""
    text = f"{raw['request']}={driver}{raw['pool']}/{raw['device']}"
    text += "!" if raw.get("adminAccess") else ""
    text += f"~{len(raw['tolerations'])}" if raw.get("tolerations") else ""
    text += "".join(f"?{one}" for one in raw.get("bindingConditions") or ())
    text += "#" if raw.get("shareID") else ""
    consumed = raw.get("consumedCapacity")
    amounts = " ".join(f"{name}={amount}" for name, amount in sorted((consumed or {}).items()))
    return text + ("{" + amounts + "}" if consumed else "")


def _where(selector: Raw | None) -> list[str]:
    if selector is None:
        return ["@anywhere"]
    terms = [
        f"{one['key']}:{'|'.join(one['values'])}"
        for term in selector["nodeSelectorTerms"]
        for kind in ("matchFields", "matchExpressions")
        for one in term.get(kind) or ()
    ]
    return [] if terms == ["metadata.name:n1"] else ["@" + "&".join(sorted(terms))]


def _config(raw: Raw) -> str:
    source = "class" if raw["source"] == "FromClass" else "claim"
    requests = raw.get("requests")
    text = f"{source}:{raw['opaque']['parameters']['set']}"
    return text + (f"[{','.join(requests)}]" if requests else "")
