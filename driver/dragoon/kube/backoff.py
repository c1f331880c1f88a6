"""Waiting times between tries: growing, bounded, with jitter, clockless."""

import random
from collections.abc import Callable


def _random() -> float:
    return random.random()  # noqa: S311 - spreads load, guards nothing


class Backoff:
    """Doubling delays in seconds, each between half of its size and all of it.

    first: the first delay's upper bound. limit: no delay is longer. rng: numbers in [0, 1).
    One instance belongs to one sequence of tries; reset() after a success.
    """

    def __init__(
        self, *, first: float = 0.5, limit: float = 30.0, rng: Callable[[], float] = _random
    ) -> None:
        self._first = first
        self._limit = limit
        self._rng = rng
        self.failures = 0

    def next(self) -> float:
        """The seconds to wait after one more failure."""
        # The exponent is bounded too: an outage of days must not overflow a float.
        size: float = min(self._limit, self._first * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return size * (0.5 + self._rng() / 2)

    def reset(self) -> None:
        """Forgets the failures: the next delay is the first again."""
        self.failures = 0
