"""Lists: the lists extension version 3, Kubernetes' own list functions, and sets.

Source: cel-go 0.29 `ext/lists.go`, `ext/sets.go`; k8s.io/apiserver 0.37 `cel/library/lists.go`.
"""

from collections.abc import Callable
from functools import cmp_to_key, reduce
from typing import Any, Final

from dragoon.cel.errors import CostLimitError, ExpressionFailedError
from dragoon.cel.frame import COST_LIMIT
from dragoon.cel.functions import Library, Overload, function, method, translated
from dragoon.cel.library.operators import LARGEST, int_result, uint_result
from dragoon.cel.times import Duration, Timestamp, checked_duration
from dragoon.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    parameter,
)
from dragoon.cel.values import (
    NUMBERS,
    UInt,
    compare_numbers,
    contained,
    equal,
    no_such_overload,
)

_T: Final = parameter("T")
_LIST: Final = list_of(_T)
COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
"""Types of elements that can be sorted."""
_ADDED: Final = NUMBERS | {Duration}
_ORDERED_CLASSES: Final = frozenset((bool, str, bytes, Duration, Timestamp))

_List = tuple[Any, ...]


def _order(left: Any, right: Any) -> int | None:
    """-1, 0 or 1, None where two values have no order."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return compare_numbers(left, right)
    if type(left) is not type(right) or not _has_order(left):
        return None
    return int(left > right) - int(left < right)


def _has_order(value: Any) -> bool:
    return type(value) in NUMBERS or type(value) in _ORDERED_CLASSES


def _is_sorted(items: _List) -> bool:
    """Neighbours that cannot be compared are in order, to Kubernetes."""
    for position, item in enumerate(items):
        if not _has_order(item):
            raise no_such_overload("isSorted", item)
        if position and _order(items[position - 1], item) == 1:
            return False
    return True


def _plus(left: Any, right: Any) -> Any:
    if type(left) is not type(right) or type(left) not in _ADDED:
        raise no_such_overload("+", left, right)
    if type(left) is Duration:
        return translated(checked_duration)(left.nanoseconds + right.nanoseconds)
    if type(left) is UInt:
        return uint_result(int(left) + int(right))
    return left + right if type(left) is float else int_result(left + right)


def _sum(zero: Any) -> Callable[[_List], Any]:
    """The sum of a list, of which zero is that of an empty one."""

    def total(items: _List) -> Any:
        if not items:
            return zero
        if type(items[0]) not in _ADDED:
            raise no_such_overload("sum", items)
        return reduce(_plus, items)

    return total


def _best(name: str, sign: int) -> Callable[[_List], Any]:
    """The first of the largest (sign 1) or smallest (sign -1) elements."""

    def best(items: _List) -> Any:
        if not items:
            raise ExpressionFailedError(f"{name} called on empty list")
        for item in items:
            if not _has_order(item):
                raise no_such_overload(name, item)
        return reduce(lambda old, new: new if _order(new, old) == sign else old, items)

    return best


def _index_of(items: _List, wanted: Any) -> int:
    return next((i for i, item in enumerate(items) if contained(item, (wanted,))), -1)


def _last_index_of(items: _List, wanted: Any) -> int:
    return next((i for i in reversed(range(len(items))) if contained(items[i], (wanted,))), -1)


def _includes(target: Any, wanted: Any) -> bool:
    """Whether a list has the element, or a single value equals it."""
    items = target if type(target) is tuple else (target,)
    return any(contained(item, (wanted,)) for item in items)


def _slice(items: _List, start: int, end: int) -> _List:
    if not 0 <= start <= end <= len(items):
        raise ExpressionFailedError(
            f"cannot slice({start}, {end}), the list has {len(items)} elements"
        )
    return items[start:end]


def _flatten(items: _List, depth: int = 1) -> _List:
    if depth < 0:
        raise ExpressionFailedError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if type(item) is tuple and depth:
            flat.extend(_flatten(item, depth - 1))
        else:
            flat.append(item)
    return tuple(flat)


def _sort(items: _List) -> _List:
    return sorted_by(items, items)


def sorted_by(items: _List, keys: _List) -> _List:
    """The items in the order of their keys: `sortBy`. Raises ExpressionFailedError.

    Equal keys keep their order; Go promises that for no more than 12 items.
    """
    if keys and not _has_order(keys[0]):
        raise ExpressionFailedError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise ExpressionFailedError("list elements must have the same type")

    def order(left: tuple[Any, Any], right: tuple[Any, Any]) -> int:
        return _order(left[0], right[0]) or 0

    pairs = sorted(zip(keys, items, strict=True), key=cmp_to_key(order))
    return tuple(item for _, item in pairs)


def _range(count: int) -> _List:
    if not 0 <= count <= LARGEST:
        raise ExpressionFailedError(f"lists.range({count}): allowed are 0 to {LARGEST}")
    return tuple(range(count))


def _check_pairs(left: _List, right: _List) -> None:
    """Does not begin to compare more pairs than the cost limit allows."""
    if len(left) * len(right) > COST_LIMIT:
        raise CostLimitError(f"more than {COST_LIMIT} pairs of elements to compare")


def _distinct(items: _List) -> _List:
    _check_pairs(items, items)
    unique: list[Any] = []
    for item in items:
        if not contained(item, tuple(unique)):
            unique.append(item)
    return tuple(unique)


def _contains_all(items: _List, wanted: _List) -> bool:
    _check_pairs(items, wanted)
    return all(any(_is_equal(one, item) for item in items) for one in wanted)


def _is_equal(left: Any, right: Any) -> bool:
    try:
        return equal(left, right)
    except ExpressionFailedError:
        return False


def _equivalent(left: _List, right: _List) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


def _intersects(left: _List, right: _List) -> bool:
    _check_pairs(left, right)
    return any(contained(item, right) for item in left)


def _for_each(
    types: tuple[Type, ...], run: Callable[..., Any], result: Callable[[Type], Type]
) -> tuple[Overload, ...]:
    """One method signature for lists of each type."""
    return tuple(method(run, list_of(type_), result=result(type_)) for type_ in types)


FUNCTIONS: Final[Library] = {
    "isSorted": _for_each(COMPARABLE, _is_sorted, lambda _: BOOL),
    "sum": tuple(
        method(_sum(zero), list_of(type_), result=type_)
        for type_, zero in ((INT, 0), (UINT, UInt(0)), (DOUBLE, 0.0), (DURATION, Duration(0)))
    ),
    "max": _for_each(COMPARABLE, _best("max", 1), lambda type_: type_),
    "min": _for_each(COMPARABLE, _best("min", -1), lambda type_: type_),
    "indexOf": (method(_index_of, _LIST, _T, result=INT),),
    "lastIndexOf": (method(_last_index_of, _LIST, _T, result=INT),),
    "includes": (method(_includes, DYN, DYN, result=BOOL),),
    "slice": (method(_slice, _LIST, INT, INT, result=_LIST),),
    "flatten": (
        method(_flatten, list_of(_LIST), result=_LIST),
        method(_flatten, list_of(DYN), INT, result=list_of(DYN)),
    ),
    "sort": _for_each(COMPARABLE, _sort, list_of),
    "lists.range": (function(_range, INT, result=list_of(INT)),),
    "reverse": (method(lambda items: items[::-1], _LIST, result=_LIST),),
    "distinct": (method(_distinct, _LIST, result=_LIST),),
    "sets.contains": (function(_contains_all, _LIST, _LIST, result=BOOL),),
    "sets.equivalent": (function(_equivalent, _LIST, _LIST, result=BOOL),),
    "sets.intersects": (function(_intersects, _LIST, _LIST, result=BOOL),),
}
