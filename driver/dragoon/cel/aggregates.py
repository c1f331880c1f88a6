"""Closures for lists and maps that stand in an expression; what is optional and absent is left out."""

from collections.abc import Sequence
from typing import Any

from dragoon.cel import costs
from dragoon.cel.frame import BUDGET, Evaluate, Frame
from dragoon.cel.optionals import is_present
from dragoon.cel.values import map_key


def list_of(items: Sequence[tuple[Evaluate, bool]]) -> Evaluate:
    """A list. items: each with whether it is optional."""

    def run(frame: Frame) -> tuple[Any, ...]:
        frame[BUDGET] -= costs.LIST
        values = [(item(frame), optional) for item, optional in items]
        return tuple(
            value.value if optional else value
            for value, optional in values
            if not optional or is_present(value)
        )

    return run


def map_of(entries: Sequence[tuple[Evaluate, Evaluate, bool]]) -> Evaluate:
    """A map. entries: key, value, and whether the value is optional."""

    def run(frame: Frame) -> dict[Any, Any]:
        frame[BUDGET] -= costs.MAP
        result: dict[Any, Any] = {}
        for key, value, optional in entries:
            wanted, content = key(frame), value(frame)
            name = map_key(wanted)
            if not optional:
                result[name] = content
            elif is_present(content):
                result[name] = content.value
        return result

    return run
