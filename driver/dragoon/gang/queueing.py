"""Keys that have to be looked at: each at most once at a time, now or at a given tick.

A key that is added while it is looked at comes again afterwards: nothing that happened is missed,
and what happened many times is looked at once.
"""

import asyncio
import heapq
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")

_FEW: Final = 64
"""Ticks that do not count any more and are not worth looking for."""


class Queue(Generic[Key]):
    """The keys in the order in which they were added. clock: monotonic seconds.

    Belongs to one event loop.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ready: dict[Key, None] = {}
        self._taken: dict[Key, bool] = {}
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: Key) -> None:
        """Looks at the key as soon as it can be."""
        if key in self._taken:
            self._taken[key] = True
        else:
            self._ready[key] = None
            self._changed.set()

    def add_at(self, key: Key, tick: float) -> None:
        """Looks at the key at this tick; an earlier one that is known stays."""
        known = self._due.get(key)
        if known is not None and known <= tick:
            return
        self._due[key] = tick
        self._count += 1
        heapq.heappush(self._heap, (tick, self._count, key))
        if len(self._heap) > 2 * len(self._due) + _FEW:
            self._heap = [one for one in self._heap if self._due.get(one[2]) == one[0]]
            heapq.heapify(self._heap)
        self._changed.set()

    def forget(self, key: Key) -> None:
        """The key is gone: nothing is to be done at the tick that it was added for."""
        self._due.pop(key, None)

    async def take(self) -> Key:
        """The next key. It is not given again until `done`."""
        while True:
            left = self._move_due()
            if self._ready:
                key = next(iter(self._ready))
                del self._ready[key]
                self._taken[key] = False
                return key
            self._changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def done(self, key: Key) -> None:
        """The key was looked at; if it was added meanwhile, it is ready again."""
        if self._taken.pop(key):
            self.add(key)

    def _move_due(self) -> float | None:
        """Makes ready what is due. Seconds until the next key is, None where there is none."""
        now = self._clock()
        while self._heap:
            tick, _, key = self._heap[0]
            if self._due.get(key) != tick:
                heapq.heappop(self._heap)
            elif tick <= now:
                heapq.heappop(self._heap)
                del self._due[key]
                self.add(key)
            else:
                return tick - now
        return None
