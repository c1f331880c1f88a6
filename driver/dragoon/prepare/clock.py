"""Time as prepare sees it: a port, the real one, and one that a test moves by hand."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Protocol


class Clock(Protocol):
    """Seconds that only go forward, and sleeping in them."""

    def now(self) -> float:
        """Seconds since some moment in the past."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns after that time."""
        ...


class LoopClock:
    """The real one."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(eq=False)
class ManualClock:
    """Stands still until `advance`; a fake for tests of whatever waits."""

    time: float = 0.0
    _sleepers: list[tuple[float, asyncio.Future[None]]] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        waker = asyncio.get_running_loop().create_future()
        sleeper = (self.time + seconds, waker)
        self._sleepers.append(sleeper)
        try:
            await waker
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Moves time and wakes whoever has slept long enough."""
        self.time += seconds
        for until, waker in self._sleepers:
            if until <= self.time and not waker.done():
                waker.set_result(None)

    @property
    def sleeping(self) -> int:
        """How many sleep now."""
        return sum(not waker.done() for _, waker in self._sleepers)
