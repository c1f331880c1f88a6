"""Quantities in raw objects: text, or a number where JSON has one."""

from typing import Any, Final

from dragoon import quantity
from dragoon.api import limits
from dragoon.errors import InvalidInputError
from dragoon.quantity import Quantity

_INT64_DIGITS: Final = 19


def quantity_of(value: Any) -> Quantity | None:
    """The quantity that a raw value means, None where it means none."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not isinstance(value, str):
        return None
    try:
        return quantity.parse(str(value))
    except InvalidInputError:
        return None


def whole_of(value: Any) -> int | None:
    """The 64-bit integer that a raw value means; None for a fraction, and for what is none."""
    found = quantity_of(value)
    # More powers of ten than 64 bits hold need not be multiplied out.
    if found is None or found.scale > _INT64_DIGITS:
        return 0 if found is not None and not found.unscaled else None
    whole, rest = divmod(found.unscaled * 10 ** max(found.scale, 0), 10 ** max(-found.scale, 0))
    fits = not rest and limits.INT64_MIN <= whole <= limits.INT64_MAX
    return int(whole) if fits else None
