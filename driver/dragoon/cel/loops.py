"""Evaluation of the macros that walk over a list or a map."""

from collections.abc import Callable, Iterable
from typing import Any

from dragoon.cel.access import elements, pairs
from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.frame import PENDING, Evaluate, Frame, charge, charge_sizes
from dragoon.cel.library.lists import sorted_by
from dragoon.cel.values import map_key, no_such_overload

Walk = Callable[[Frame], Iterable[None]]
"""Puts one element after the other into the frame's slots and charges a round for each."""


def walk(over: Evaluate, slots: tuple[int, ...], steps: int) -> Walk:
    """The walk over a range for a macro with one or two variables; a round costs steps."""
    if len(slots) == 1:
        (slot,) = slots

        def one(frame: Frame) -> Iterable[None]:
            for element in elements(over(frame)):
                charge(frame, steps)
                frame[slot] = element
                yield

        return one
    first, second = slots

    def two(frame: Frame) -> Iterable[None]:
        for key, value in pairs(over(frame)):
            charge(frame, steps)
            frame[first], frame[second] = key, value
            yield

    return two


def quantifier(macro: str, rounds: Walk, body: Evaluate) -> Evaluate:
    """`all`, `exists` or `existsOne`."""
    if macro == "existsOne":
        return _exists_one(rounds, body)
    return _absorbing(rounds, body, decided=macro == "exists")


def _absorbing(rounds: Walk, body: Evaluate, *, decided: bool) -> Evaluate:
    """Stops at the first decided outcome; a failure counts only where nothing decides."""

    def run(frame: Frame) -> bool:
        failure: ExpressionFailedError | None = None
        for _ in rounds(frame):
            try:
                outcome: object = body(frame)
            except ExpressionFailedError as error:
                failure = failure or error
                continue
            if outcome is decided:
                return decided
            if type(outcome) is not bool:
                failure = failure or no_such_overload("macro", outcome)
        if failure is not None:
            raise failure
        return not decided

    return run


def _exists_one(rounds: Walk, body: Evaluate) -> Evaluate:
    def run(frame: Frame) -> bool:
        return sum(1 for _ in rounds(frame) if is_true(body(frame))) == 1

    return run


def transform(
    result: str, rounds: Walk, condition: Evaluate | None, step: Evaluate, key: Evaluate
) -> Evaluate:
    """Collects a list, a map under the first variable (key), or the entries of small maps."""

    def chosen(frame: Frame) -> Iterable[None]:
        for _ in rounds(frame):
            if condition is None or is_true(condition(frame)):
                yield

    def to_list(frame: Frame) -> tuple[Any, ...]:
        return tuple([step(frame) for _ in chosen(frame)])

    def to_map(frame: Frame) -> dict[Any, Any]:
        collected: dict[Any, Any] = {}
        for _ in chosen(frame):
            content = step(frame)
            _insert(collected, map_key(key(frame)), content)
        return collected

    def to_entries(frame: Frame) -> dict[Any, Any]:
        collected: dict[Any, Any] = {}
        for _ in chosen(frame):
            entries = step(frame)
            if not isinstance(entries, dict):
                raise no_such_overload("transformMapEntry", entries)
            for name, value in entries.items():
                _insert(collected, name, value)
        return collected

    return {"list": to_list, "map": to_map, "entries": to_entries}[result]


def _insert(collected: dict[Any, Any], key: Any, value: Any) -> None:
    if key in collected:
        raise ExpressionFailedError(f"insert failed: key {key} already exists")
    collected[key] = value


def is_true(value: Any) -> bool:
    """The value of a condition. Raises ExpressionFailedError for what is no bool."""
    if not isinstance(value, bool):
        raise no_such_overload("_?_:_", value)
    return value


def sort_by(over: Evaluate, slot: int, keys: Evaluate) -> Evaluate:
    """`sortBy`: over is remembered in the slot, so that it is evaluated once."""

    def run(frame: Frame) -> Any:
        frame[slot] = PENDING
        order = keys(frame)
        items = over(frame)
        if type(items) is not tuple:
            raise no_such_overload("sortBy", items)
        charge_sizes(frame, items)
        return sorted_by(items, order)

    return run
