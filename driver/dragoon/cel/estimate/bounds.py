"""Ranges of sizes and of costs: unsigned 64-bit numbers that stop at the largest one, as in Go."""

import math
from typing import Final, NamedTuple

UNBOUNDED: Final = 2**64 - 1
"""A size or cost of which no limit is known."""


class Bounds(NamedTuple):
    """The least and the most."""

    least: int
    most: int

    def plus(self, other: "Bounds") -> "Bounds":
        return Bounds(
            *(min(left + right, UNBOUNDED) for left, right in zip(self, other, strict=True))
        )

    def times(self, other: "Bounds") -> "Bounds":
        return Bounds(
            *(min(left * right, UNBOUNDED) for left, right in zip(self, other, strict=True))
        )

    def scaled(self, factor: float) -> "Bounds":
        """Multiplied and rounded up, in doubles."""
        return Bounds(*(_scaled(value, factor) for value in self))

    def either(self, other: "Bounds") -> "Bounds":
        """What holds both."""
        return Bounds(min(self.least, other.least), max(self.most, other.most))


def exactly(value: int) -> Bounds:
    """One number."""
    return Bounds(value, value)


UNKNOWN: Final = Bounds(0, UNBOUNDED)
NOTHING: Final = exactly(0)
ONE: Final = exactly(1)


def _scaled(value: int, factor: float) -> int:
    number = float(value)
    if number > 0 and factor > 0 and number > float(UNBOUNDED) / factor:
        return UNBOUNDED
    return min(math.ceil(number * factor), UNBOUNDED)
