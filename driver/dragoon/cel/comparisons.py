"""Closures for `==`, `!=` and `in`.

Source: cel-go 0.29 `common/types`, `interpreter/decorators.go` (what becomes of constant lists).
"""

from typing import Any, Final

from dragoon.cel import costs
from dragoon.cel.access import is_in
from dragoon.cel.calls import both
from dragoon.cel.costs import FAILED, TENTHS
from dragoon.cel.errors import EvaluationError, ExpressionFailedError
from dragoon.cel.frame import BUDGET, Evaluate, Frame
from dragoon.cel.values import NUMBERS, UNHASHABLE, contained, equal, type_name

_HASHED: Final = NUMBERS | {bool, str}
_EXACT: Final = frozenset((str, int, bool))
"""Classes for which Python's == is CEL's, as long as both sides have the same one."""


def equality(left: Evaluate, right: Evaluate, *, wanted: bool) -> Evaluate:
    """`==` (wanted) and `!=`."""
    if wanted:
        return lambda frame: equal(*both(frame, left, right, costs.equality))
    return lambda frame: _differ(*both(frame, left, right, costs.smaller))


def equality_with(left: Evaluate, other: Any, *, wanted: bool) -> Evaluate | None:
    """The same with a constant on the right; None where Python's == is not CEL's."""
    kind = type(other)
    if kind not in _EXACT or (kind is str and len(other) >= len(TENTHS)):
        return None
    length = len(other) if kind is str else 1
    price = costs.equality if wanted else costs.smaller
    compare = equal if wanted else _differ

    def is_equal(frame: Frame) -> bool:
        try:
            value = left(frame)
        except ExpressionFailedError:
            frame[BUDGET] -= price(FAILED, other)
            raise
        if type(value) is not kind:
            frame[BUDGET] -= price(value, other)
            return compare(value, other)
        if kind is str:
            size = len(value)
            frame[BUDGET] -= TENTHS[min(length, size)]
        else:
            frame[BUDGET] -= 1
        return bool(value == other) is wanted

    return is_equal


def _differ(left: Any, right: Any) -> bool:
    """`!=`: to cel-go, values that cannot be compared are different."""
    try:
        return not equal(left, right)
    except ExpressionFailedError:
        return True


def membership(value: Evaluate, container: Evaluate, *, in_list: bool) -> Evaluate:
    """`in`. in_list: the container is known to be a list."""

    def cost(_: Any, within: Any) -> int:
        return costs.size(within) if in_list else 1

    return lambda frame: is_in(*both(frame, value, container, cost))


def membership_in(value: Evaluate, members: tuple[Any, ...]) -> Evaluate:
    """`in` a constant list.

    cel-go makes a Go map of it. So a left side that Go cannot hash ends the whole evaluation;
    nothing absorbs that.
    """
    is_map = all(type(member) in _HASHED for member in members)
    cost = 0 if is_map else len(members)

    def run(frame: Frame) -> bool:
        frame[BUDGET] -= cost
        wanted = value(frame)
        if is_map and type(wanted) in UNHASHABLE:
            raise EvaluationError(f"a {type_name(wanted)} cannot be looked up in a constant list")
        return contained(wanted, members)

    return run
