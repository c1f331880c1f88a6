"""Estimated costs of calls, one signature at a time."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dragoon.cel.costs import LIST, PER_CHARACTER, PER_PATTERN_CHARACTER
from dragoon.cel.estimate.bounds import ONE, UNBOUNDED, UNKNOWN, Bounds, exactly
from dragoon.cel.estimate.parts import Part, size_at
from dragoon.cel.functions import Overload
from dragoon.cel.syntax import Literal
from dragoon.cel.types import ADDRESS, BYTES, FORMAT, NETWORK, QUANTITY, SEMVER, STRING, URL

_TEXTS: Final = frozenset((STRING, BYTES))
_ORDER: Final = frozenset(("<", "<=", ">", ">="))
_UNIT: Final = frozenset((QUANTITY, SEMVER, ADDRESS, NETWORK))
_LARGEST_FORMAT: Final = 64
_LARGEST_PATTERN: Final = 128
_ADDRESS: Final = Bounds(4, 16)
"""Bytes of an address."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a call without its arguments, and the size of its result where that is known."""

    cost: Bounds
    size: Bounds | None = None


_Estimator = Callable[[tuple[Part, ...]], Estimate]
"""From the arguments, the target first."""
_DEFAULT: Final = Estimate(ONE)


def estimate(name: str, overload: Overload, args: tuple[Part, ...]) -> Estimate:
    """The estimate for one signature."""
    found = _BY_NAME.get(name)
    if found is not None:
        return found(args)
    first = overload.params[0] if overload.params else None
    if name in {"containsIP", "containsCIDR"}:
        return _containment(args, network=name == "containsCIDR", text=overload.params[1] == STRING)
    if name in {"sort", "sortBy"}:
        element = overload.params[-1].params[0]
        return _self_comparison(args[-1], 2.0 + (PER_CHARACTER if element in _TEXTS else 0))
    if name == "+" and first is not None and (first in _TEXTS or first.kind == "list"):
        size = args[0].size_or_any.plus(args[1].size_or_any)
        return Estimate(ONE if first.kind == "list" else size.scaled(PER_CHARACTER), size)
    if name in _ORDER and first in _TEXTS:
        return smaller(*args)
    return _DEFAULT if first is None else _conversion(name, overload, args)


def _conversion(name: str, overload: Overload, args: tuple[Part, ...]) -> Estimate:
    size = args[0].size_or_any
    cost = size.scaled(PER_CHARACTER)
    if name == "ip":
        return _DEFAULT if overload.member else Estimate(cost)
    if (name, overload.params[0]) == ("bytes", STRING):
        return Estimate(cost, Bounds(size.least, size.most * 4 % 2**64))
    if (name, overload.params[0]) == ("string", BYTES):
        return Estimate(cost, Bounds(size.least // 4, size.most))
    return _DEFAULT


def equality(left: Part, right: Part) -> Estimate:
    """`==`."""
    if left.type == right.type:
        if left.type in _UNIT:
            return _DEFAULT
        if left.type == FORMAT:
            return Estimate(Bounds(1, _LARGEST_FORMAT).scaled(PER_CHARACTER))
        if left.type == URL:
            most = ONE if right.size is None else right.size
            return Estimate(Bounds(1, most.most).scaled(PER_CHARACTER))
    return smaller(left, right)


def smaller(left: Part, right: Part) -> Estimate:
    """Comparing two values of any size."""
    most = min(left.size_or_any.most, right.size_or_any.most)
    return Estimate(Bounds(1 if most else 0, most).scaled(PER_CHARACTER))


def _scan(position: int, factor: float, *, keeps: bool = False) -> _Estimator:
    """Walking through one argument. keeps: the result is as large."""

    def scan(args: tuple[Part, ...]) -> Estimate:
        size = args[position].size_or_any
        return Estimate(size.scaled(factor), size if keeps else None)

    return scan


def _search(args: tuple[Part, ...]) -> Estimate:
    text = args[0].size_or_any.plus(ONE).scaled(PER_CHARACTER)
    return Estimate(text.times(args[1].size_or_any.scaled(PER_PATTERN_CHARACTER)))


def _find(args: tuple[Part, ...]) -> Estimate:
    return Estimate(_search(args).cost, Bounds(0, args[0].size_or_any.most))


def _validate(args: tuple[Part, ...]) -> Estimate:
    text = args[1].size_or_any.scaled(PER_CHARACTER)
    return Estimate(text.scaled(_LARGEST_PATTERN * PER_PATTERN_CHARACTER))


def _contains(args: tuple[Part, ...]) -> Estimate:
    text, part = (arg.size_or_any.scaled(PER_CHARACTER) for arg in args)
    return Estimate(text.times(part))


def _elements(args: tuple[Part, ...], *, any_type: bool = False) -> Estimate:
    """Looking at all elements of a list, or characters of a text."""
    target = args[0]
    size = target.size_or_any
    if target.type.params:
        cost = ONE
        if target.type.params[0] in _TEXTS:
            cost = cost.plus(_element_size(target).scaled(PER_CHARACTER))
        return Estimate(size.times(cost))
    return Estimate(size if any_type else size.scaled(PER_CHARACTER))


def _element_size(target: Part) -> Bounds:
    found = None if target.path is None else size_at((*target.path, "@items"))
    return UNKNOWN if found is None else found


def _includes(args: tuple[Part, ...]) -> Estimate:
    return _elements(args, any_type=True)


def _replace(args: tuple[Part, ...]) -> Estimate:
    text, old, new = (arg.size_or_any for arg in args[:3])
    most, kept_most = _replacements(text.most, old.least, grows=new.most > old.least)
    least, kept_least = _replacements(text.least, old.most, grows=new.least < old.most)
    size = Bounds(least, most).times(new).plus(Bounds(kept_least, kept_most))
    return Estimate(text.scaled(2 * PER_CHARACTER), size)


def _replacements(text: int, old: int, *, grows: bool) -> tuple[int, int]:
    """How often a part of this size is replaced at most (or least), and how much remains."""
    if old == 0:
        return min(text + 1, UNBOUNDED), text
    if not grows:
        return 0, text
    return min(math.ceil(float(text) / float(old)), UNBOUNDED), 0


def _split(args: tuple[Part, ...]) -> Estimate:
    size = args[0].size_or_any
    most = _literal_int(args[2]) if len(args) > 2 else None
    result = Bounds(0, size.most if most is None else most % 2**64)
    return Estimate(size.scaled(2 * PER_CHARACTER), result)


def _join(args: tuple[Part, ...]) -> Estimate:
    count = args[0].size_or_any
    size = count.times(_element_size(args[0]))
    if len(args) > 1:
        between = Bounds(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(args[1].size_or_any.times(between))
    return Estimate(size.scaled(PER_CHARACTER), size)


def _containment(args: tuple[Part, ...], *, network: bool, text: bool) -> Estimate:
    cost = _ADDRESS.plus(_ADDRESS).scaled(PER_CHARACTER)
    if network:
        cost = cost.plus(_ADDRESS.scaled(PER_CHARACTER)).plus(ONE)
    return Estimate(cost.plus(args[1].size_or_any.scaled(PER_CHARACTER)) if text else cost)


def _new_list(factor: float, size: Bounds) -> Estimate:
    return Estimate(size.scaled(factor).plus(exactly(1 + LIST)), size)


def _self_comparison(keys: Part, factor: float) -> Estimate:
    size = keys.size_or_any
    return _new_list(factor, size.times(size))


def _literal_int(part: Part) -> int | None:
    node = part.node
    return node.value if isinstance(node, Literal) and type(node.value) is int else None


def _number(part: Part, default: int) -> int:
    value = _literal_int(part)
    return default if value is None else max(value, 0)


def _slice(args: tuple[Part, ...]) -> Estimate:
    end = _number(args[2], args[0].size_or_any.most)
    return _new_list(1, exactly((end - _number(args[1], 0)) % 2**64))


def _range(args: tuple[Part, ...]) -> Estimate:
    return _new_list(1, exactly(_number(args[0], UNBOUNDED)))


def _flatten(args: tuple[Part, ...]) -> Estimate:
    depth = _number(args[1], UNBOUNDED) if len(args) > 1 else 1
    return _new_list(float(depth), args[0].size_or_any)


def _pairs(factor: int) -> _Estimator:
    def pairs(args: tuple[Part, ...]) -> Estimate:
        product = args[0].size_or_any.times(args[1].size_or_any)
        return Estimate(product.scaled(factor).plus(ONE))

    return pairs


def _quote(args: tuple[Part, ...]) -> Estimate:
    size = args[0].size_or_any
    result = Bounds((size.least + 2) % 2**64, (size.most * 2 + 2) % 2**64)
    return Estimate(size.scaled(PER_CHARACTER), result)


_FIRST: Final = _scan(0, PER_CHARACTER)
_KEEPS: Final = _scan(0, PER_CHARACTER, keeps=True)
_BY_NAME: Final[dict[str, _Estimator]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _elements),
    "includes": _includes,
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _KEEPS),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity"), _FIRST),
    **dict.fromkeys(("semver", "isSemver", "format"), _FIRST),
    "ip.isCanonical": _scan(0, 2 * PER_CHARACTER),
    **dict.fromkeys(("startsWith", "endsWith"), _scan(1, PER_CHARACTER)),
    **dict.fromkeys(("find", "findAll"), _find),
    "matches": _search,
    "validate": _validate,
    "contains": _contains,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "slice": _slice,
    "lists.range": _range,
    "reverse": lambda args: _new_list(1, args[0].size_or_any),
    "flatten": _flatten,
    "distinct": lambda args: _self_comparison(args[0], 2.0),
    "sets.contains": _pairs(1),
    "sets.intersects": _pairs(1),
    "sets.equivalent": _pairs(2),
    "strings.quote": _quote,
}
