"""How often something may be written that can change for ever. Pure."""

import math


class Budget:
    """A burst of turns, then one each `rest` seconds; unused ones come back as slowly."""

    def __init__(self, burst: int, rest: float) -> None:
        self._slack = (burst - 1) * rest
        self._rest = rest
        self._used_until = -math.inf
        """When all turns that were taken would have come one by one."""

    def wait(self, now: float) -> float:
        """In how many seconds there is a turn."""
        return max(0.0, self._used_until - self._slack - now)

    def take(self, now: float) -> None:
        """Uses a turn."""
        self._used_until = max(self._used_until, now) + self._rest
