"""Quantities in raw objects: text, or a number where JSON has one."""

from typing import Any

from dragoon import quantity
from dragoon.errors import InvalidInputError
from dragoon.quantity import Quantity


def quantity_of(value: Any) -> Quantity | None:
    """The quantity that a raw value means, None where it means none."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not isinstance(value, str):
        return None
    try:
        return quantity.parse(str(value))
    except InvalidInputError:
        return None
