"""When the next attempt is due, and how long to wait after what."""

import asyncio
import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Waiting times in seconds.

    wipe: from the first deletion by others to the repair; several come together.
    edit: from an edit by others to the repair, and between two repairs, so that a tug-of-war with
    another writer stays slow.
    first_retry, last_retry: the first and the longest wait after a failure.
    first_refused, last_refused: the same after the server called a slice invalid.
    probe: how long a server that does not keep taints is believed to stay so.
    burst, rest: so many changes are written as they come, then one each `rest`: hardware, labels or
    other writers that change for ever get a bounded number of writes.
    """

    wipe: float = 0.05
    edit: float = 1.0
    first_retry: float = 0.5
    last_retry: float = 15.0
    first_refused: float = 30.0
    last_refused: float = 600.0
    probe: float = 600.0
    burst: int = 20
    rest: float = 6.0


class Due:
    """Wakes one waiter at the earliest of all requested times, while it is open."""

    def __init__(self) -> None:
        self._at = math.inf
        self._open = False
        self._changed = asyncio.Event()

    def request(self, delay: float = 0.0) -> None:
        """Asks to be woken in so many seconds, or earlier if that was asked before."""
        self._at = min(self._at, asyncio.get_running_loop().time() + delay)
        self._changed.set()

    def open(self, now: bool) -> None:  # noqa: FBT001 - reads as open(True)
        """While not open, nobody is woken; requests are kept."""
        self._open = now
        self._changed.set()

    async def wait(self) -> None:
        """Returns when the requested time has come, and forgets the request."""
        while True:
            left = self._at - asyncio.get_running_loop().time() if self._open else math.inf
            if left <= 0:
                self._at = math.inf
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(left if left < math.inf else None):
                    await self._changed.wait()
            except TimeoutError:
                continue
