"""Closures for paths such as `device.attributes["d"].name`, which cost one unit a step.

Source: cel-go 0.29 `interpreter/attributes.go`: a path costs one unit, and each of its steps one
more, also the step that fails. A step that finds nothing after a `?` costs nothing.
"""

from typing import Any

from dragoon.cel.access import has, index, no_such_key, optional_index, optional_select, select
from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.frame import BUDGET, DEVICE, Evaluate, Frame
from dragoon.cel.values import ABSENT, OptionalValue

_DEPTH = 3


def fused(path: tuple[str, ...]) -> Evaluate | None:
    """One closure for a path from the device with constant steps, None where there is none."""
    if len(path) == 1:
        return _field(*path)
    if len(path) == 2:
        return _domain(*path)
    if len(path) == _DEPTH and path[0] in {"attributes", "capacity"}:
        return _name(*path)
    return None


def _field(field: str) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame[BUDGET] -= 2
        return frame[DEVICE][field]

    return run


def _domain(field: str, domain: str) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame[BUDGET] -= 3
        return frame[DEVICE][field][domain]

    return run


def _name(field: str, domain: str, name: str) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame[BUDGET] -= 4
        try:
            return frame[DEVICE][field][domain][name]
        except KeyError:
            raise no_such_key(frame[DEVICE][field][domain], name) from None

    return run


def presence(operand: Evaluate, field: str, root: int) -> Evaluate:
    """`has(operand.field)`, whose last step costs nothing. root: where a new path begins, 1."""

    def run(frame: Frame) -> Any:
        frame[BUDGET] -= root
        try:
            value = operand(frame)
        except ExpressionFailedError:
            frame[BUDGET] += 1
            raise
        found = has(value, field)
        if type(value) is OptionalValue and not found:
            frame[BUDGET] += 1
        return found

    return run


def selection(operand: Evaluate, field: str, root: int, *, optional: bool) -> Evaluate:
    """`operand.field` and `operand.?field`."""

    def run(frame: Frame) -> Any:
        frame[BUDGET] -= root
        value = operand(frame)
        if optional or type(value) is OptionalValue:
            found = optional_select(value, field)
            frame[BUDGET] -= found.present
            return found
        frame[BUDGET] -= 1
        return select(value, field)

    return run


def indexing(
    operand: Evaluate, key: Evaluate, root: int, saved: int, *, optional: bool
) -> Evaluate:
    """`operand[key]` and `operand[?key]`. saved: what the key costs less than by itself."""

    def run(frame: Frame) -> Any:
        frame[BUDGET] -= root
        value = operand(frame)
        if value is ABSENT:
            # What is not there is not indexed: the index is not evaluated either.
            return ABSENT
        frame[BUDGET] += saved
        if optional or type(value) is OptionalValue:
            found = optional_index(value, key(frame))
            frame[BUDGET] -= found.present
            return found
        frame[BUDGET] -= 1
        return index(value, key(frame))

    return run
