"""Closures for optional values: a missing one, and what is made of one that is there."""

from typing import Any

from dragoon.cel.frame import BUDGET, PENDING, Evaluate, Frame
from dragoon.cel.values import ABSENT, OptionalValue, no_such_overload


def content(optional: Evaluate) -> Evaluate:
    """The value of an optional that is present."""

    def run(frame: Frame) -> Any:
        frame[BUDGET] -= 1
        return optional(frame).value

    return run


def otherwise(left: Evaluate, right: Evaluate, *, value: bool) -> Evaluate:
    """`orValue` (value) and `or`: the second part is evaluated only if the first has no value."""

    def run(frame: Frame) -> Any:
        optional = left(frame)
        if not is_present(optional):
            return right(frame)
        return optional.value if value else optional

    return run


def mapped(target: Evaluate, slot: int, body: Evaluate, *, flat: bool) -> Evaluate:
    """`optMap`, and `optFlatMap` (flat), whose body gives an optional itself."""

    def run(frame: Frame) -> Any:
        frame[BUDGET] -= 1
        if not is_present(target(frame)):
            frame[BUDGET] -= 1
            return ABSENT
        frame[slot] = PENDING
        if flat:
            return body(frame)
        frame[BUDGET] -= 1
        return OptionalValue(present=True, value=body(frame))

    return run


def is_present(value: Any) -> bool:
    """Whether an optional has a value. Raises ExpressionFailedError for what is no optional."""
    if not isinstance(value, OptionalValue):
        raise no_such_overload("optional", value)
    return value.present
