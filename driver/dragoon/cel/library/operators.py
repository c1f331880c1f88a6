"""Arithmetic and order. Overflow is an error, never a wrap.

Source: cel-go 0.29 `common/stdlib`, `common/types`; comparison of numbers across types as
k8s.io/apiserver switches it on. `==`, `!=`, `&&`, `||`, `?:` and indexing are the evaluator's own.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from dragoon.cel.errors import ExpressionFailedError, SizeLimitError
from dragoon.cel.functions import Library, Overload, function, translated
from dragoon.cel.times import SECOND, Duration, Timestamp, checked_duration, checked_timestamp
from dragoon.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    parameter,
)
from dragoon.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt, compare_numbers

_ITEMS: Final = list_of(parameter("A"))
LARGEST: Final = 1_000_000
"""Elements or characters of the largest value that is made; kube-scheduler has no such limit."""


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


def _ints(run: Callable[[int, int], int]) -> Overload:
    return function(lambda left, right: int_result(run(left, right)), INT, INT, result=INT)


def _uints(run: Callable[[int, int], int]) -> Overload:
    def uints(left: int, right: int) -> UInt:
        return uint_result(run(int(left), int(right)))

    return function(uints, UINT, UINT, result=UINT)


def _doubles(run: Callable[[float, float], float]) -> Overload:
    return function(run, DOUBLE, DOUBLE, result=DOUBLE)


def check_size(size: int) -> None:
    """Raises SizeLimitError for a value that Dragoon does not make."""
    if size > LARGEST:
        raise SizeLimitError(f"a value of size {size}, Dragoon makes none beyond {LARGEST}")


def _add_sized(type_: Type) -> Overload:
    def joined(left: Any, right: Any) -> Any:
        check_size(len(left) + len(right))
        return left + right

    return function(joined, type_, type_, result=type_)


def _durations(run: Callable[[int, int], int]) -> Overload:
    def durations(left: Duration, right: Duration) -> Duration:
        return checked_duration(run(left.nanoseconds, right.nanoseconds))

    return function(translated(durations), DURATION, DURATION, result=DURATION)


def _shifted(time: Timestamp, nanoseconds: int) -> Timestamp:
    return checked_timestamp(time.nanoseconds + nanoseconds, time.offset)


def _later(time: Timestamp, by: Duration) -> Timestamp:
    return _shifted(time, by.nanoseconds)


def _earlier(time: Timestamp, by: Duration) -> Timestamp:
    return _shifted(time, checked_duration(-by.nanoseconds).nanoseconds)


def _between(left: Timestamp, right: Timestamp) -> Duration:
    # The whole seconds have to fit by themselves too, as in cel-go.
    checked_duration((left.nanoseconds // SECOND - right.nanoseconds // SECOND) * SECOND)
    return checked_duration(left.nanoseconds - right.nanoseconds)


def _ordered(accept: tuple[int, ...]) -> tuple[Overload, ...]:
    """The signatures of a comparison that is true for these outcomes of -1, 0, 1."""

    def numbers(left: Any, right: Any) -> bool:
        outcome = compare_numbers(left, right)
        if outcome is None:
            raise ExpressionFailedError("NaN values cannot be ordered")
        return outcome in accept

    def plain(left: Any, right: Any) -> bool:
        return ((left > right) - (left < right)) in accept

    # The order counts: the first signature that fits tells the type of what was not known.
    return (
        function(plain, BOOL, BOOL, result=BOOL),
        function(plain, INT, INT, result=BOOL),
        *(
            function(numbers, left, right, result=BOOL)
            for left, right in (
                *((INT, DOUBLE), (INT, UINT), (UINT, UINT), (UINT, DOUBLE), (UINT, INT)),
                *((DOUBLE, DOUBLE), (DOUBLE, INT), (DOUBLE, UINT)),
            )
        ),
        function(plain, STRING, STRING, result=BOOL),
        function(plain, BYTES, BYTES, result=BOOL),
        function(plain, TIMESTAMP, TIMESTAMP, result=BOOL),
        function(plain, DURATION, DURATION, result=BOOL),
    )


FUNCTIONS: Final[Library] = {
    "+": (
        _add_sized(BYTES),
        _doubles(operator.add),
        _durations(operator.add),
        function(
            translated(lambda by, time: _later(time, by)), DURATION, TIMESTAMP, result=TIMESTAMP
        ),
        function(translated(_later), TIMESTAMP, DURATION, result=TIMESTAMP),
        _ints(operator.add),
        _add_sized(_ITEMS),
        _add_sized(STRING),
        _uints(operator.add),
    ),
    "-": (
        _doubles(operator.sub),
        _durations(operator.sub),
        _ints(operator.sub),
        function(translated(_earlier), TIMESTAMP, DURATION, result=TIMESTAMP),
        function(translated(_between), TIMESTAMP, TIMESTAMP, result=DURATION),
        _uints(operator.sub),
    ),
    "*": (_doubles(_multiply), _ints(operator.mul), _uints(operator.mul)),
    "/": (_doubles(_divide), _ints(_quotient), _uints(_quotient)),
    "%": (_ints(_remainder), _uints(_remainder)),
    "-_": (
        function(operator.neg, DOUBLE, result=DOUBLE),
        function(lambda value: int_result(-value), INT, result=INT),
    ),
    "!_": (function(operator.not_, BOOL, result=BOOL),),
    "<": _ordered((-1,)),
    "<=": _ordered((-1, 0)),
    ">": _ordered((1,)),
    ">=": _ordered((0, 1)),
}
