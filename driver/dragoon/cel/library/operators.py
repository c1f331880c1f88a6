"""Arithmetic and order. Overflow is an error, never a wrap.

Source: cel-go 0.29 `common/stdlib`, `common/types`; comparison of numbers across types as
k8s.io/apiserver switches it on. `==`, `!=`, `&&`, `||`, `?:` and indexing are the evaluator's own.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.functions import Effort, Library, Overload, function
from dragoon.cel.types import BOOL, BYTES, DOUBLE, INT, STRING, UINT, Type, list_of, parameter
from dragoon.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt, compare_numbers

_ITEMS: Final = list_of(parameter("A"))


def int_result(value: int) -> int:
    """The value as a CEL int. Raises ExpressionFailedError beyond 64 bits."""
    if not INT_MIN <= value <= INT_MAX:
        raise ExpressionFailedError("integer overflow")
    return value


def uint_result(value: int) -> UInt:
    """The value as a CEL uint. Raises ExpressionFailedError beyond 64 bits and below zero."""
    if not 0 <= value <= UINT_MAX:
        raise ExpressionFailedError("unsigned integer overflow")
    return UInt(value)


def _quotient(left: int, right: int) -> int:
    """Division towards zero, as in Go."""
    if right == 0:
        raise ExpressionFailedError("division by zero")
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def _remainder(left: int, right: int) -> int:
    """The remainder that goes with _quotient: its sign is the left one's."""
    if right == 0:
        raise ExpressionFailedError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise ExpressionFailedError("integer overflow")
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def _divide(left: float, right: float) -> float:
    if right == 0.0:
        if left == 0.0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def _multiply(left: float, right: float) -> float:
    return left * right


def _integers(run: Callable[[int, int], int]) -> tuple[Overload, Overload]:
    """The signatures of an operator on two ints and on two uints."""

    def ints(left: int, right: int) -> int:
        return int_result(run(left, right))

    def uints(left: int, right: int) -> UInt:
        return uint_result(run(int(left), int(right)))

    return function(ints, INT, INT, result=INT), function(uints, UINT, UINT, result=UINT)


def _doubles(run: Callable[[float, float], float]) -> Overload:
    return function(run, DOUBLE, DOUBLE, result=DOUBLE)


def _add_sized(type_: Type) -> Overload:
    return function(operator.add, type_, type_, result=type_, effort=Effort.GROW)


def _ordered(accept: tuple[int, ...]) -> tuple[Overload, ...]:
    """The signatures of a comparison that is true for these outcomes of -1, 0, 1."""

    def numbers(left: Any, right: Any) -> bool:
        outcome = compare_numbers(left, right)
        if outcome is None:
            raise ExpressionFailedError("NaN values cannot be ordered")
        return outcome in accept

    def plain(left: Any, right: Any) -> bool:
        return ((left > right) - (left < right)) in accept

    same = [function(plain, type_, type_, result=BOOL) for type_ in (BOOL, INT, STRING, BYTES)]
    mixed = [
        function(numbers, left, right, result=BOOL)
        for left in (INT, UINT, DOUBLE)
        for right in (INT, UINT, DOUBLE)
        if (left, right) != (INT, INT)
    ]
    return (*same, *mixed)


FUNCTIONS: Final[Library] = {
    "+": (
        *_integers(operator.add),
        _doubles(operator.add),
        _add_sized(STRING),
        _add_sized(BYTES),
        _add_sized(_ITEMS),
    ),
    "-": (*_integers(operator.sub), _doubles(operator.sub)),
    "*": (*_integers(operator.mul), _doubles(_multiply)),
    "/": (*_integers(_quotient), _doubles(_divide)),
    "%": _integers(_remainder),
    "-_": (
        function(lambda value: int_result(-value), INT, result=INT),
        function(operator.neg, DOUBLE, result=DOUBLE),
    ),
    "!_": (function(operator.not_, BOOL, result=BOOL),),
    "<": _ordered((-1,)),
    "<=": _ordered((-1, 0)),
    ">": _ordered((1,)),
    ">=": _ordered((0, 1)),
}
