"""Sizes of parts: of what they are read from, of their types, of either of two, of their elements."""

from dataclasses import replace
from typing import Final

from dragoon.cel.estimate.bounds import NOTHING, ONE, Bounds
from dragoon.cel.estimate.parts import Part, size_at
from dragoon.cel.types import DYN, Type

_SCALARS: Final = frozenset(
    ("bool", "double", "int", "uint", "google.protobuf.Duration", "google.protobuf.Timestamp")
)


def read_from(known: Part, part: Part) -> Part:
    """A variable, from what it stands for."""
    size = size_at(known.path) or _type_size(part.type) or known.size
    return replace(part, path=known.path, size=size, entries=known.entries)


def own_size(part: Part) -> Bounds | None:
    """What its place in a device or its type says, None where neither does."""
    return size_at(part.path) or _type_size(part.type)


def _type_size(type_: Type) -> Bounds | None:
    if type_.kind == "optional_type":
        return _type_size(type_.params[0])
    return ONE if type_.kind in _SCALARS else None


def one_of(part: Part, yes: Part, no: Part) -> Part:
    """A part that is one of two."""
    entries = None if yes.entries is None else yes.entries.either(no.entries)
    return replace(part, size=yes.size_or_any.either(no.size_or_any), entries=entries)


def common_size(parts: list[Part]) -> Bounds:
    """The size of any of these."""
    if not parts:
        return NOTHING
    common = parts[0].size_or_any
    for part in parts[1:]:
        common = common.either(part.size_or_any)
    return common


def elements(names: tuple[str, ...], over: Part) -> list[tuple[str, Part]]:
    """The variables of a macro that walks over a part."""
    entries = over.entries
    kind = over.type.kind if entries is None else entries.kind
    key = None if entries is None else entries.key
    value = None if entries is None else entries.value
    steps = ("@indices", "@items") if kind == "list" else ("@keys", "@values")
    if len(names) == 1:
        size, step = (value, steps[1]) if kind == "list" else (key, steps[0])
        return [(names[0], _element(over, step, size))]
    return [
        (names[0], _element(over, steps[0], key)),
        (names[1], _element(over, steps[1], value)),
    ]


def _element(over: Part, step: str, size: Bounds | None) -> Part:
    return Part(None, DYN, NOTHING, size, None, (*(over.path or ()), step))
