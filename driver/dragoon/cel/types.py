"""Static types and when one may stand for another, by the rules of cel-go 0.29 `checker`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type: a name and parameters. A type parameter has kind `param`."""

    kind: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        if self.kind == _PARAM:
            return str(self.params[0].kind)
        if not self.params:
            return self.kind
        return f"{self.kind}({', '.join(map(str, self.params))})"


_PARAM: Final = "param"

DYN: Final = Type("dyn")
ERROR: Final = Type("error")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
DURATION: Final = Type("google.protobuf.Duration")
TIMESTAMP: Final = Type("google.protobuf.Timestamp")
QUANTITY: Final = Type("kubernetes.Quantity")
SEMVER: Final = Type("kubernetes.Semver")
DEVICE: Final = Type("kubernetes.DRADevice")
URL: Final = Type("kubernetes.URL")
FORMAT: Final = Type("kubernetes.NamedFormat")
ADDRESS: Final = Type("net.IP")
NETWORK: Final = Type("net.CIDR")

_OBJECTS: Final = frozenset((QUANTITY, SEMVER, DEVICE, DURATION, TIMESTAMP, URL, FORMAT))
"""Types that null may stand for."""


def list_of(element: Type) -> Type:
    """The type of lists of these elements."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """The type of maps with these keys and values."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """The type of optional values."""
    return Type("optional_type", (value,))


def parameter(name: str) -> Type:
    """A type parameter: the same name means the same type within one signature."""
    return Type(_PARAM, (Type(name),))


def is_parameter(type_: Type) -> bool:
    """Whether this is a type parameter."""
    return type_.kind == _PARAM


def is_open(type_: Type) -> bool:
    """Whether anything is known: dyn, or the type of something that already failed to check."""
    return type_ in {DYN, ERROR}


def unwrapped(type_: Type) -> tuple[Type, bool]:
    """The type inside an optional and True, or the type itself and False."""
    if type_.kind == "optional_type":
        return type_.params[0], True
    return type_, False


class Unifier:
    """What is known of type parameters so far. One per expression; mutable."""

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}
        self._count = 0

    def fresh(self) -> Type:
        """A type parameter of which nothing is known."""
        self._count += 1
        return parameter(f"_{self._count}")

    def instance(self, types: Iterable[Type]) -> tuple[Type, ...]:
        """The types with all their parameters replaced by fresh ones, the same by the same."""
        fresh: dict[Type, Type] = {}

        def renewed(type_: Type) -> Type:
            if is_parameter(type_):
                return fresh.setdefault(type_, self.fresh())
            return Type(type_.kind, tuple(map(renewed, type_.params)))

        return tuple(map(renewed, types))

    def resolved(self, type_: Type, *, final: bool = False) -> Type:
        """The type with what is known filled in; with final, the unknown becomes dyn."""
        if type_ in self._known:
            return self.resolved(self._known[type_], final=final)
        if is_parameter(type_):
            return DYN if final else type_
        if not type_.params:
            return type_
        params = tuple(self.resolved(param, final=final) for param in type_.params)
        return Type(type_.kind, params)

    def assignable(self, given: Iterable[Type], wanted: Iterable[Type]) -> bool:
        """Whether all given types fit the wanted ones; what was learned stays only if they do."""
        before = dict(self._known)
        fits = self._all_fit(tuple(given), tuple(wanted))
        if not fits:
            self._known = before
        return fits

    def joined(self, left: Type, right: Type) -> Type | None:
        """The more general of two element types, None where they do not mix."""
        if not self.assignable((left,), (right,)):
            return None
        return _more_general(left, right)

    def _all_fit(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        return len(given) == len(wanted) and all(map(self._fits, given, wanted))

    def _fits(self, given: Type, wanted: Type) -> bool:
        if is_parameter(wanted):
            fits, bound = self._substitutes(given, wanted)
            if fits or bound:
                return fits
        if is_parameter(given):
            return self._substitutes(wanted, given)[0]
        if is_open(given) or is_open(wanted):
            return True
        if NULL in {given, wanted}:
            other = wanted if given == NULL else given
            return other == NULL or other in _OBJECTS or other.kind == "optional_type"
        return given.kind == wanted.kind and self._all_fit(given.params, wanted.params)

    def _substitutes(self, type_: Type, param: Type) -> tuple[bool, bool]:
        """Whether the type can stand for the parameter, and whether that was bound already."""
        if type_ == param:
            return True, True
        bound = self._known.get(param)
        if bound is not None:
            if type_ == bound:
                return True, True
            if self._fits(type_, bound):
                general = _more_general(type_, bound)
                if not self._occurs(param, general):
                    self._known[param] = general
                return True, True
            return False, True
        if self._occurs(param, type_):
            return False, False
        self._known[param] = type_
        return True, False

    def _occurs(self, param: Type, within: Type) -> bool:
        if within == param:
            return True
        if is_parameter(within):
            bound = self._known.get(within)
            return bound is not None and self._occurs(param, bound)
        return any(self._occurs(param, inner) for inner in within.params)


def _more_general(left: Type, right: Type) -> Type:
    return left if _is_less_specific(left, right) else right


def _is_less_specific(left: Type, right: Type) -> bool:
    if left == DYN or is_parameter(left):
        return True
    if right == DYN or is_parameter(right) or left.kind != right.kind:
        return False
    return len(left.params) == len(right.params) and all(
        map(_is_less_specific, left.params, right.params)
    )
