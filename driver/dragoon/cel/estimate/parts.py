"""What is known of a part of an expression before it is evaluated, and sizes within a device."""

from dataclasses import dataclass, replace
from typing import Final

from dragoon.cel.estimate.bounds import UNKNOWN, Bounds
from dragoon.cel.syntax import Node
from dragoon.cel.types import Type

Path = tuple[str, ...]
"""Where a value comes from: a variable, then fields, `@values`, `@keys` or `@items`."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Sizes of the keys and values of a list or a map. kind: `list` or `map`."""

    kind: str
    key: Bounds
    value: Bounds

    def either(self, other: "Entries | None") -> "Entries | None":
        if other is None:
            return None
        return Entries(self.kind, self.key.either(other.key), self.value.either(other.value))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression. size: None where it is not known; path: None where there is none."""

    node: Node | None
    type: Type
    cost: Bounds
    size: Bounds | None = None
    entries: Entries | None = None
    path: Path | None = None

    @property
    def size_or_any(self) -> Bounds:
        return UNKNOWN if self.size is None else self.size

    def costing(self, cost: Bounds) -> "Part":
        return replace(self, cost=cost)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The most elements or characters of a part of a device, and the shapes within it."""

    most: int
    key: "_Shape | None" = None
    value: "_Shape | None" = None


_ATTRIBUTE: Final = _Shape(64)
_QUANTITY: Final = _Shape(0)
_DOMAIN: Final = _Shape(63)
_IDENTIFIER: Final = _Shape(32)
_FIELDS: Final = {
    "driver": _Shape(63),
    "allowMultipleAllocations": _Shape(1),
    "attributes": _Shape(32, _DOMAIN, _Shape(32, _IDENTIFIER, _ATTRIBUTE)),
    "capacity": _Shape(32, _DOMAIN, _Shape(32, _IDENTIFIER, _QUANTITY)),
}


def size_at(path: Path | None) -> Bounds | None:
    """The size of what lies at a path within the device, None where Kubernetes does not know it.

    It does not know a domain that is read as a field, `device.attributes.d`.
    """
    if not path or path[0] != "device":
        return None
    if len(path) == 1:
        return Bounds(0, 0)
    shape = _FIELDS.get(path[1])
    for step in path[2:]:
        if shape is None:
            return None
        if step in {"@values", "@items"}:
            shape = shape.value
        elif step == "@keys":
            shape = shape.key
        else:
            shape = _ATTRIBUTE if shape.value is _ATTRIBUTE else None
    return None if shape is None else Bounds(0, shape.most)
