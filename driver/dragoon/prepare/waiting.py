"""Waiting inside a call: a budget that a second caller extends, a signal that cannot be missed."""

import asyncio
from dataclasses import dataclass
from typing import Self

from dragoon.prepare.clock import Clock

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


class Budget:
    """How long a call may still wait."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._until = clock.now() + seconds

    def __repr__(self) -> str:
        return f"<Budget {self.left:.1f} s left>"

    def last_as_long_as(self, other: Self) -> None:
        """Ends no earlier than another's: a second caller has asked for the same."""
        self._until = max(self._until, other._until)

    @property
    def left(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self._until - self._clock.now())


@dataclass
class Backoff:
    """Growing pauses between tries."""

    pause: float = _FIRST_PAUSE_S

    def next(self) -> float:
        """The next pause in seconds."""
        pause = self.pause
        self.pause = min(pause * 2, _LONGEST_PAUSE_S)
        return pause


class Changes:
    """Tells waiters that something changed. Read `count` before looking, then wait beyond it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiters: set[asyncio.Future[None]] = set()
        self.count = 0

    def announce(self) -> None:
        """Wakes everybody who waits."""
        self.count += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def beyond(self, count: int, seconds: float) -> bool:
        """Waits until something changed since `count`, at most so long. Returns whether it did."""
        if self.count == count:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            timer = asyncio.ensure_future(self._clock.sleep(seconds))
            self._waiters.add(waiter)
            try:
                await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._waiters.discard(waiter)
                timer.cancel()
        return self.count != count
