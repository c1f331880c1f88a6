"""Evaluation of the macros that walk over a list or a map."""

from collections.abc import Callable, Iterable
from typing import Any

from dragoon.cel.access import elements, pairs
from dragoon.cel.calls import both
from dragoon.cel.costs import self_comparison
from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.frame import BUDGET, PENDING, Evaluate, Frame, check_budget
from dragoon.cel.library.lists import sorted_by
from dragoon.cel.values import map_key, no_such_overload

Walk = Callable[[Frame], Iterable[None]]
"""Puts one element after the other into the frame's slots."""


def walk(over: Evaluate, slots: tuple[int, ...]) -> Walk:
    """The walk over a range for a macro with one or two variables."""
    if len(slots) == 1:
        (slot,) = slots

        def one(frame: Frame) -> Iterable[None]:
            for element in elements(over(frame)):
                check_budget(frame)
                frame[slot] = element
                yield

        return one
    first, second = slots

    def two(frame: Frame) -> Iterable[None]:
        for key, value in pairs(over(frame)):
            check_budget(frame)
            frame[first], frame[second] = key, value
            yield

    return two


def quantifier(macro: str, rounds: Walk, body: Evaluate) -> Evaluate:
    """`all`, `exists` or `existsOne`."""
    if macro == "existsOne":
        return _exists_one(rounds, body)
    return _absorbing(rounds, body, decided=macro == "exists")


def _absorbing(rounds: Walk, body: Evaluate, *, decided: bool) -> Evaluate:
    """Stops at the first decided outcome; a failure counts only where nothing decides.

    cel-go asks before each round whether the outcome is decided, which costs 2 (`exists` negates:
    3), and joins the outcomes so far with the round's.
    """
    asking = 3 if decided else 2

    def run(frame: Frame) -> bool:
        failure: ExpressionFailedError | None = None
        settled = False
        for _ in rounds(frame):
            frame[BUDGET] -= asking
            if settled:
                break
            frame[BUDGET] -= 1
            try:
                outcome: object = body(frame)
            except ExpressionFailedError as error:
                failure = failure or error
                continue
            settled = outcome is decided
            if type(outcome) is not bool:
                failure = failure or no_such_overload("macro", outcome)
        frame[BUDGET] -= 1
        if failure is not None and not settled:
            raise failure
        return decided is settled

    return run


def _exists_one(rounds: Walk, body: Evaluate) -> Evaluate:
    """A failure lets the other rounds go on, as in cel-go, but is the outcome."""

    def run(frame: Frame) -> bool:
        failure: ExpressionFailedError | None = None
        count = 0
        for _ in rounds(frame):
            try:
                found = is_true(body(frame))
            except ExpressionFailedError as error:
                failure = failure or error
                continue
            if found:
                frame[BUDGET] -= 2
                count += 1
        frame[BUDGET] -= 2
        if failure is not None:
            raise failure
        return count == 1

    return run


Collect = Callable[[Frame, Any, Any], Any]
"""Adds what a round gives to what has been collected, which is None after a failure."""


def transform(
    rounds: Walk, condition: Evaluate | None, start: Callable[[], Any], collect: Collect
) -> Evaluate:
    """Collects what the rounds give into what start makes.

    A failure lets the other rounds go on, as in cel-go, but is the outcome.
    """

    def run(frame: Frame) -> Any:
        failure: ExpressionFailedError | None = None
        collected = start()
        for _ in rounds(frame):
            try:
                if condition is None or is_true(condition(frame)):
                    collect(frame, collected, failure)
            except ExpressionFailedError as error:
                failure = failure or error
        frame[BUDGET] -= 1
        if failure is not None:
            raise failure
        return tuple(collected) if type(collected) is list else collected

    return run


def into_list(step: Evaluate, cost: int) -> Collect:
    """Appends. cost: of making and adding a list of one."""

    def collect(frame: Frame, collected: list[Any], _: Any) -> None:
        frame[BUDGET] -= cost
        collected.append(step(frame))

    return collect


def into_map(key: Evaluate, step: Evaluate) -> Collect:
    """Inserts under the key; cel-go does not evaluate more once there was a failure."""

    def collect(frame: Frame, collected: dict[Any, Any], failure: Any) -> None:
        frame[BUDGET] -= 1
        if failure is None:
            name = key(frame)
            frame[BUDGET] -= 2
            content = step(frame)
            _insert(collected, map_key(name), content)

    return collect


def into_entries(step: Evaluate) -> Collect:
    """Inserts the entries of a small map."""

    def collect(frame: Frame, collected: dict[Any, Any], _: Any) -> None:
        frame[BUDGET] -= 2
        entries = step(frame)
        if not isinstance(entries, dict):
            raise no_such_overload("transformMapEntry", entries)
        for name, value in entries.items():
            _insert(collected, name, value)

    return collect


def _insert(collected: dict[Any, Any], key: Any, value: Any) -> None:
    if key in collected:
        raise ExpressionFailedError(f"insert failed: key {key} already exists")
    collected[key] = value


def is_true(value: Any) -> bool:
    """The value of a condition. Raises ExpressionFailedError for what is no bool."""
    if not isinstance(value, bool):
        raise no_such_overload("_?_:_", value)
    return value


def sort_by(over: Evaluate, slot: int, keys: Evaluate, *, known: bool) -> Evaluate:
    """`sortBy`: over is remembered in the slot, so that it is evaluated once.

    known: whether the type of the keys is, by which cel-go charges for the comparisons.
    """

    def cost(_: Any, order: Any) -> int:
        return self_comparison(order) if known else 1

    def run(frame: Frame) -> Any:
        frame[slot] = PENDING
        items, order = both(frame, over, keys, cost)
        if type(items) is not tuple:
            raise no_such_overload("sortBy", items)
        return sorted_by(items, order)

    return run
