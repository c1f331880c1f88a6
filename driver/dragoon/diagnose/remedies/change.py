"""One change to a claim, and how large it is beside others."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.quantity import Quantity

Path = tuple[str | int, ...]

MOST: Final = 8
"""Amounts, tolerations and classes that are thought of for one field."""

KINDS: Final = ("guard", "amount", "count", "toleration", "clause", "constraint", "class")
"""From what changes the wish least to what changes it most; within a kind the magnitude decides.

After these come holders: what others have to give up.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A changed claim. magnitude: how much is changed, comparable within the kind.

    path: of the field in the claim. before and after: as text; after is empty for what is dropped.
    """

    kind: str
    magnitude: int
    claim: Raw
    path: Path
    before: str
    after: str

    @property
    def size(self) -> tuple[int, int, str, str]:
        """The order in which changes are tried and offered."""
        return KINDS.index(self.kind), self.magnitude, dotted(self.path), self.after

    @property
    def group(self) -> tuple[str, str]:
        """Changes of one group are alternatives: only the smallest of them is offered."""
        return self.kind, dotted(self.path)


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """One request or alternative: its fields and where they are in the claim."""

    name: str
    path: Path
    raw: Raw


def requests(claim: Raw) -> Iterator[Fields]:
    """Every request and alternative of a claim."""
    devices = mapping(mapping(claim.get("spec")).get("devices"))
    for index, request in enumerate(map(mapping, listed(devices.get("requests")))):
        path: Path = ("spec", "devices", "requests", index)
        name = text(request.get("name"))
        if isinstance(request.get("exactly"), Mapping):
            yield Fields(name, (*path, "exactly"), request["exactly"])
        for number, one in enumerate(map(mapping, listed(request.get("firstAvailable")))):
            yield Fields(f"{name}/{text(one.get('name'))}", (*path, "firstAvailable", number), one)


def percent(wanted: Quantity, given: Quantity) -> int:
    """By how much an amount differs from what was wanted, in per cent, rounded up."""
    base = abs(wanted.as_approximate_float()) or 1.0
    return math.ceil(abs(wanted.as_approximate_float() - given.as_approximate_float()) / base * 100)


def edited(raw: Any, path: Path, value: Any) -> Any:
    """A copy with another value at the path; None takes it out. Nothing that is passed changes."""
    first, *rest = path
    if isinstance(first, int):
        items = list(raw)
        if rest:
            items[first] = edited(items[first], tuple(rest), value)
        elif value is None:
            del items[first]
        else:
            items[first] = value
        return items
    kept = dict(raw)
    if rest:
        empty: Any = [] if isinstance(rest[0], int) else {}
        kept[first] = edited(kept.get(first) or empty, tuple(rest), value)
    elif value is None:
        kept.pop(first, None)
    else:
        kept[first] = value
    return kept


def dotted(path: Path) -> str:
    """The path as messages have it: `spec.devices.requests[0].exactly.count`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")
