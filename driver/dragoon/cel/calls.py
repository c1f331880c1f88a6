"""Closures for calls and operators. Each takes compiled arguments and gives a compiled whole."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from dragoon.cel import costs
from dragoon.cel.checked import Callee
from dragoon.cel.costs import FAILED, Cost, cost_by_result, cost_of, with_second
from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.frame import BUDGET, COST_LIMIT, PENDING, Evaluate, Frame, check_budget
from dragoon.cel.functions import Dispatch, Overload
from dragoon.cel.values import no_such_overload

_OPERATORS: Final = frozenset(("+", "-", "*", "/", "%", "<", "<=", ">", ">="))


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known before the evaluation, and what reading it costs each time all the same."""

    value: Any
    cost: int = 0


@lru_cache(maxsize=512)
def _dispatch(name: str, overloads: tuple[Overload, ...]) -> Dispatch:
    """One dispatch per set of signatures, so that it learns classes once."""
    return Dispatch(name, overloads)


def call(callee: Callee, args: tuple[Evaluate, ...]) -> Evaluate:
    """A call of a function of the library."""
    dispatch = _dispatch(callee.name, callee.overloads)
    by_result = cost_by_result(callee)
    if by_result is not None:
        return _priced_by_result(dispatch, args, by_result)
    cost = cost_of(callee)
    if len(args) == 1:
        return _unary(dispatch, args[0], cost)
    if len(args) == 2 and evaluates_both(callee):
        return _binary(dispatch, *args, cost)
    return _general(dispatch, args, cost)


def evaluates_both(callee: Callee) -> bool:
    """Whether cel-go evaluates the second argument also where the first failed.

    It does for operators, and for functions but `format` of which only one signature fits.
    """
    one = len(callee.overloads) == 1 and callee.name != "format"
    return one or callee.name in _OPERATORS


def _unary(dispatch: Dispatch, arg: Evaluate, cost: Cost) -> Evaluate:
    learned: dict[type, Callable[[Any], Any]] = {}
    find = dispatch.find
    if isinstance(cost, int):

        def fixed(frame: Frame) -> Any:
            frame[BUDGET] -= cost
            value = arg(frame)
            run = learned.get(type(value))
            if run is None:
                run = learned[type(value)] = find(value)
            return run(value)

        return fixed

    def priced(frame: Frame) -> Any:
        try:
            value = arg(frame)
        except ExpressionFailedError:
            frame[BUDGET] -= cost(FAILED)
            raise
        frame[BUDGET] -= cost(value)
        run = learned.get(type(value))
        if run is None:
            run = learned[type(value)] = find(value)
        return run(value)

    return priced


def _binary(dispatch: Dispatch, left: Evaluate, right: Evaluate, cost: Cost) -> Evaluate:
    found, find = dispatch.found, dispatch.find
    charged = _charging(cost)

    def binary(frame: Frame) -> Any:
        first, second = both(frame, left, right, charged)
        run = found.get((type(first), type(second))) or find(first, second)
        return run(first, second)

    return binary


def _charging(cost: Cost) -> Callable[[Any, Any], int]:
    return (lambda _, __: cost) if isinstance(cost, int) else cost


def both(
    frame: Frame, left: Evaluate, right: Evaluate, cost: Callable[[Any, Any], int]
) -> tuple[Any, Any]:
    """Two arguments. cel-go evaluates, and charges for, both also where the first one fails."""
    try:
        first = left(frame)
    except ExpressionFailedError:
        try:
            second = right(frame)
        except ExpressionFailedError:
            second = FAILED
        frame[BUDGET] -= cost(FAILED, second)
        raise
    try:
        second = right(frame)
    except ExpressionFailedError:
        frame[BUDGET] -= cost(first, FAILED)
        raise
    frame[BUDGET] -= cost(first, second)
    return first, second


def with_constant(callee: Callee, arg: Evaluate, constant: Constant) -> Evaluate:
    """A call of two arguments, the second of them constant."""
    by_result = cost_by_result(callee)
    if by_result is not None:
        dispatch = _dispatch(callee.name, callee.overloads)
        return _priced_by_result(dispatch, (arg, lambda _: constant.value), by_result)
    find = _dispatch(callee.name, callee.overloads).find
    learned: dict[type, Callable[[Any, Any], Any]] = {}
    value = constant.value
    price = cost_of(callee)
    if isinstance(price, int):
        fixed = price + constant.cost

        def charge_first(frame: Frame) -> Any:
            frame[BUDGET] -= fixed
            first = arg(frame)
            run = learned.get(type(first))
            if run is None:
                run = learned[type(first)] = find(first, value)
            return run(first, value)

        return charge_first
    cost = with_second(price, value)
    # A call with a pattern that is known is another kind of call to cel-go.
    after_failure = 0 if price is costs.search else cost(FAILED) + constant.cost

    def charge_known(frame: Frame) -> Any:
        try:
            first = arg(frame)
        except ExpressionFailedError:
            frame[BUDGET] -= after_failure
            raise
        frame[BUDGET] -= cost(first) + constant.cost
        run = learned.get(type(first))
        if run is None:
            run = learned[type(first)] = find(first, value)
        return run(first, value)

    return charge_known


def _general(dispatch: Dispatch, args: tuple[Evaluate, ...], cost: Cost) -> Evaluate:
    """Of none, three and more arguments cel-go evaluates none after one that failed.

    It charges for the call where all of them have been evaluated.
    """
    last = len(args) - 1

    def general(frame: Frame) -> Any:
        values: list[Any] = []
        for position, arg in enumerate(args):
            try:
                values.append(arg(frame))
            except ExpressionFailedError:
                if position == last:
                    frame[BUDGET] -= cost if isinstance(cost, int) else cost(*values, FAILED)
                raise
        frame[BUDGET] -= cost if isinstance(cost, int) else cost(*values)
        return dispatch.find(*values)(*values)

    return general


def _priced_by_result(
    dispatch: Dispatch, args: tuple[Evaluate, ...], cost: Callable[[Any], int]
) -> Evaluate:
    """A call that costs what its result is worth; a failure has size 1."""
    last = len(args) - 1

    def run(frame: Frame) -> Any:
        values: list[Any] = []
        failure: ExpressionFailedError | None = None
        for position, arg in enumerate(args):
            try:
                values.append(arg(frame))
            except ExpressionFailedError as error:
                if position < last and last > 1:
                    raise
                failure = failure or error
        result: Any = FAILED
        try:
            if failure is not None:
                raise failure
            result = dispatch.find(*values)(*values)
        finally:
            frame[BUDGET] -= cost(result)
        check_budget(frame)
        return result

    return run


def variable(slot: int) -> Evaluate:
    """A variable that has a value."""

    def run(frame: Frame) -> Any:
        frame[BUDGET] -= 1
        return frame[slot]

    return run


def once(slot: int, value: Evaluate) -> Evaluate:
    """A variable whose value, or failure, is computed when it is first read."""

    def run(frame: Frame) -> Any:
        frame[BUDGET] -= 1
        if frame[slot] is PENDING:
            try:
                frame[slot] = value(frame)
            except ExpressionFailedError as error:
                frame[slot] = error
            check_budget(frame)
        result = frame[slot]
        if type(result) is ExpressionFailedError:
            raise result
        return result

    return run


def constant(run: Evaluate) -> Any:
    """The value of a closure that reads nothing. Raises EvaluationError."""
    return run([None, COST_LIMIT, {}])


def bound(slot: int, body: Evaluate) -> Evaluate:
    """A body with a variable that is computed where it is first read: see `once`."""

    def run(frame: Frame) -> Any:
        frame[slot] = PENDING
        return body(frame)

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
