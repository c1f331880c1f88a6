"""What an expression computes with, and when two values are equal or ordered.

Runtime values are Python's own where CEL's meaning is the same: bool, int (checked to 64 bits),
float, str, bytes, None, tuple for lists, dict for maps; and quantity.Quantity, semver.Version and
the classes of addresses, formats, times and urls.
A bool as a map key is a Flag, because Python's True equals 1 and CEL's does not.

Source of the rules: cel-go 0.29 `common/types`.
"""

import enum
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

from dragoon.cel.addresses import Address, Network
from dragoon.cel.errors import EvaluationError, ExpressionFailedError
from dragoon.cel.formats import NamedFormat
from dragoon.cel.times import Duration, Timestamp
from dragoon.cel.urls import Url
from dragoon.quantity import Quantity
from dragoon.semver import Version

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


_INT_RANGE: Final = float(INT_MIN), float(INT_MAX)
_UINT_RANGE: Final = 0.0, float(UINT_MAX)


class UInt(int):
    """An unsigned integer; arithmetic with int does not mix, comparison does."""

    __slots__ = ()


class Computed(Quantity):
    """The result of `add` or `sub`: on the right of `==` it equals no quantity but fails.

    A peculiarity of k8s.io/apiserver 0.37 (`cel/library/quantity.go` returns another Go type).
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """optional.of(value), or optional.none() when not present."""

    present: bool
    value: Any = None


ABSENT: Final = OptionalValue(present=False)


class Flag(enum.Enum):
    """A bool as the key of a map."""

    FALSE = False
    TRUE = True


class NameMap(dict[str, Any]):
    """What one domain holds. Only strings are looked up in it; anything else is not there."""

    __slots__ = ()


class DomainMap(dict[str, NameMap]):
    """device.attributes or device.capacity: a domain nobody uses reads as an empty map.

    Source: k8s.io/dynamic-resource-allocation 0.37 `cel/compile.go`. `in` and iteration show real
    domains only.
    """

    __slots__ = ()

    def __missing__(self, domain: str) -> NameMap:
        return _NOTHING


_NOTHING: Final = NameMap()


@dataclass(frozen=True, slots=True, eq=False)
class Unequal:
    """A list or the like as the key of a map: it is there, but never found again."""

    value: Any


NUMBERS: Final = frozenset((int, UInt, float))
_PLAIN: Final = frozenset((bool, int, UInt, float, str, bytes, type(None), Duration, Timestamp))
_COMPARABLE: Final[dict[type, type]] = {
    Quantity: Quantity,
    Computed: Quantity,
    **{kind: kind for kind in (Version, Address, Network, NamedFormat, Url)},
}
"""Kubernetes' types, and what each can be compared with."""
_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    NameMap: "map",
    DomainMap: "map",
    Quantity: "kubernetes.Quantity",
    Computed: "kubernetes.Quantity",
    Version: "kubernetes.Semver",
    OptionalValue: "optional_type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Address: "net.IP",
    Network: "net.CIDR",
    Url: "kubernetes.URL",
    NamedFormat: "kubernetes.NamedFormat",
}


def type_name(value: Any) -> str:
    """The CEL type of a runtime value."""
    return _TYPE_NAMES[type(value)]


def no_such_overload(function: str, *values: Any) -> ExpressionFailedError:
    """The error for arguments whose types the function does not take."""
    types = ", ".join(type_name(value) for value in values)
    return ExpressionFailedError(f"no such overload: {function}({types})")


def equal(left: Any, right: Any) -> bool:
    """CEL's `==`: values of different types are unequal, numbers compare across types.

    Raises ExpressionFailedError for a Quantity or Version on the left and another type on the
    right, as Kubernetes' types do.
    """
    kind, other = type(left), type(right)
    if kind in _PLAIN or right is None:
        if kind is other:
            return bool(left == right)
        return kind in NUMBERS and other in NUMBERS and compare_numbers(left, right) == 0
    if kind in _COMPARABLE:
        if _COMPARABLE[kind] is not other:
            raise no_such_overload("_==_", left, right)
        return bool(left == right)
    if kind is tuple:
        return other is tuple and len(left) == len(right) and all(map(_equal_inside, left, right))
    if kind is OptionalValue:
        return (
            other is OptionalValue
            and left.present == right.present
            and (not left.present or equal(left.value, right.value))
        )
    return (
        isinstance(right, dict)
        and len(left) == len(right)
        and all(key in right and _equal_inside(value, right[key]) for key, value in left.items())
    )


def _equal_inside(left: Any, right: Any) -> bool:
    """Equality of members: cel-go takes a comparison that fails for an equal one."""
    try:
        return equal(left, right)
    except ExpressionFailedError:
        return True


def contained(value: Any, members: tuple[Any, ...]) -> bool:
    """CEL's `in` for a list: a comparison that fails is no match."""
    for member in members:
        try:
            if equal(value, member):
                return True
        except ExpressionFailedError:
            continue
    return False


def compare_numbers(left: Any, right: Any) -> int | None:
    """-1, 0 or 1; None with a NaN. A double meets an integer as cel-go does, as doubles."""
    if (type(left) is float) != (type(right) is float):
        number = left if type(left) is float else right
        lowest, highest = _UINT_RANGE if UInt in {type(left), type(right)} else _INT_RANGE
        if lowest <= number <= highest:
            left, right = float(left), float(right)
    if left != left or right != right:  # noqa: PLR0124 - NaN
        return None
    return int(left > right) - int(left < right)


INDEXES: Final = frozenset((bool, int, UInt, float, str))
"""Classes of values that can stand in `[]`."""
UNHASHABLE: Final = frozenset((bytes, Version, NamedFormat))
"""Classes that Go cannot look up in a map: to try ends the evaluation, and nothing absorbs it."""


def map_key(value: Any) -> Hashable:
    """A value as a key of a map that an expression makes. Raises EvaluationError for some."""
    kind = type(value)
    if kind in UNHASHABLE:
        raise EvaluationError(f"a {type_name(value)} cannot be the key of a map")
    if kind is bool:
        return Flag(value)
    return value if kind in _PLAIN else Unequal(value)


def lookup_key(mapping: dict[Any, Any], value: Any) -> Hashable:
    """A value as the key to look for in a map; None is in no map of the device, nor in {}."""
    if type(mapping) is dict and mapping:
        return map_key(value)
    return value if isinstance(value, str) else None


def from_key(key: Any) -> Any:
    """The CEL value of a runtime map's key."""
    return key.value if isinstance(key, Flag | Unequal) else key


def show(value: Any) -> str:
    """A value as a person reads it, in CEL's notation where there is one."""
    return _SHOWN.get(type(value), str)(value)


def _show_string(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _show_map(value: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{show(from_key(key))}: {show(of)}" for key, of in value.items()) + "}"


_SHOWN: Final[dict[type, Callable[[Any], str]]] = {
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    UInt: lambda value: f"{int(value)}u",
    str: _show_string,
    bytes: lambda value: f"b{_show_string(value.decode('latin-1'))}",
    tuple: lambda value: f"[{', '.join(map(show, value))}]",
    dict: _show_map,
    NameMap: _show_map,
    DomainMap: _show_map,
    OptionalValue: lambda value: (
        f"optional.of({show(value.value)})" if value.present else "optional.none()"
    ),
}
