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


class Stopwatch:
    """How long a piece of work took, and parts of it: seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = clock.now()
        self.spans: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Stopwatch {self.seconds:.3f} s {self.spans}>"

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return self._clock.now() - self._begun

    def span(self, name: str) -> "_Span":
        """Adds the time that its block takes to a part."""
        return _Span(self._clock, self.spans, name)


class _Span:
    """A class, for `contextmanager` takes four times as long."""

    __slots__ = ("_begun", "_clock", "_name", "_spans")

    def __init__(self, clock: Clock, spans: dict[str, float], name: str) -> None:
        self._clock = clock
        self._spans = spans
        self._name = name

    def __enter__(self) -> None:
        self._begun = self._clock.now()

    def __exit__(self, *_: object) -> None:
        took = self._clock.now() - self._begun
        self._spans[self._name] = self._spans.get(self._name, 0.0) + took


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
