"""Closures for calls and operators. Each takes compiled arguments and gives a compiled whole."""

from functools import lru_cache
from typing import Any, Final

from dragoon.cel.access import is_in
from dragoon.cel.errors import EvaluationError, ExpressionFailedError
from dragoon.cel.frame import PENDING, STEP_LIMIT, Evaluate, Frame, charge_sizes
from dragoon.cel.functions import Dispatch, Effort, Overload
from dragoon.cel.values import (
    NUMBERS,
    UNHASHABLE,
    OptionalValue,
    contained,
    equal,
    no_such_overload,
    type_name,
)

_HASHED: Final = NUMBERS | {bool, str}
_EXACT: Final = frozenset((str, int, bool))
"""Classes for which Python's == is CEL's, as long as both sides have the same one."""


@lru_cache(maxsize=512)
def _dispatch(name: str, overloads: tuple[Overload, ...]) -> Dispatch:
    """One dispatch per set of signatures, so that it learns classes once."""
    return Dispatch(name, overloads)


def call(
    name: str, overloads: tuple[Overload, ...], args: tuple[Evaluate, ...], *, in_loop: bool
) -> Evaluate:
    """A call of a function of the library, with its effort counted where that can matter."""
    dispatch = _dispatch(name, overloads)
    if dispatch.effort is Effort.GROW or (dispatch.effort is Effort.SCAN and in_loop):
        return _counted(dispatch, args)
    if len(args) == 1:
        return _unary(dispatch, args[0])
    if len(args) == 2:
        return _binary(dispatch, *args)

    def general(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        return dispatch.find(*values)(*values)

    return general


def _unary(dispatch: Dispatch, arg: Evaluate) -> Evaluate:
    found, find = dispatch.found, dispatch.find

    def unary(frame: Frame) -> Any:
        value = arg(frame)
        run = found.get((type(value),)) or find(value)
        return run(value)

    return unary


def _binary(dispatch: Dispatch, left: Evaluate, right: Evaluate) -> Evaluate:
    found, find = dispatch.found, dispatch.find

    def binary(frame: Frame) -> Any:
        first, second = left(frame), right(frame)
        run = found.get((type(first), type(second))) or find(first, second)
        return run(first, second)

    return binary


def _counted(dispatch: Dispatch, args: tuple[Evaluate, ...]) -> Evaluate:
    """A call that pays for the sizes of its arguments and its result."""

    def run(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        charge_sizes(frame, *values)
        result = dispatch.find(*values)(*values)
        charge_sizes(frame, result)
        return result

    return run


def once(slot: int, value: Evaluate) -> Evaluate:
    """A variable whose value, or failure, is computed when it is first read."""

    def run(frame: Frame) -> Any:
        if frame[slot] is PENDING:
            try:
                frame[slot] = value(frame)
            except ExpressionFailedError as error:
                frame[slot] = error
        result = frame[slot]
        if type(result) is ExpressionFailedError:
            raise result
        return result

    return run


def constant(run: Evaluate) -> Any:
    """The value of a closure that reads nothing. Raises ExpressionFailedError."""
    return run([None, STEP_LIMIT, {}])


def equality(left: Evaluate, right: Evaluate, *, wanted: bool) -> Evaluate:
    """`==` (wanted) and `!=`."""
    if wanted:
        return lambda frame: equal(left(frame), right(frame))
    return lambda frame: _differ(left(frame), right(frame))


def equality_with(left: Evaluate, other: Any, *, wanted: bool) -> Evaluate | None:
    """The same with a constant on the right; None where Python's == is not CEL's."""
    kind = type(other)
    if kind not in _EXACT:
        return None

    def is_equal(frame: Frame) -> bool:
        value = left(frame)
        return bool(value == other) if type(value) is kind else equal(value, other)

    def is_different(frame: Frame) -> bool:
        value = left(frame)
        return bool(value != other) if type(value) is kind else _differ(value, other)

    return is_equal if wanted else is_different


def _differ(left: Any, right: Any) -> bool:
    """`!=`: to cel-go, values that cannot be compared are different."""
    try:
        return not equal(left, right)
    except ExpressionFailedError:
        return True


def membership(value: Evaluate, container: Evaluate) -> Evaluate:
    """`in`."""
    return lambda frame: is_in(value(frame), container(frame))


def membership_in(value: Evaluate, members: tuple[Any, ...]) -> Evaluate:
    """`in` a constant list.

    cel-go makes a Go map of it. So an empty one is false without a look at the left side, and a
    left side that Go cannot hash ends the whole evaluation; nothing absorbs that.
    """
    if not members:
        return lambda _: False
    is_map = all(type(member) in _HASHED for member in members)

    def run(frame: Frame) -> bool:
        wanted = value(frame)
        if is_map and type(wanted) in UNHASHABLE:
            raise EvaluationError(f"a {type_name(wanted)} cannot be looked up in a constant list")
        return contained(wanted, members)

    return run


def otherwise(left: Evaluate, right: Evaluate, *, value: bool) -> Evaluate:
    """`orValue` (value) and `or`: the second part is evaluated only if the first has no value."""

    def run(frame: Frame) -> Any:
        optional = left(frame)
        if not is_present(optional):
            return right(frame)
        return optional.value if value else optional

    return run


def logical(operands: tuple[Evaluate, ...], *, decided: bool) -> Evaluate:
    """`&&` (decided by false) and `||` (by true): a failure counts only where nothing decides."""
    name = "||" if decided else "&&"

    def run(frame: Frame) -> bool:
        failure: ExpressionFailedError | None = None
        for operand in operands:
            try:
                outcome: object = operand(frame)
            except ExpressionFailedError as error:
                failure = failure or error
                continue
            if outcome is decided:
                return decided
            if type(outcome) is not bool:
                failure = failure or no_such_overload(name, outcome)
        if failure is not None:
            raise failure
        return not decided

    return run


def is_present(value: Any) -> bool:
    """Whether an optional has a value. Raises ExpressionFailedError for what is no optional."""
    if not isinstance(value, OptionalValue):
        raise no_such_overload("optional", value)
    return value.present
