"""Second tries for Workloads that were sent back: a few at one time, as often as there is time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from dragoon.gang.workers import Workers
from dragoon.kube.mirror import Key

_MOST: Final = 4
"""At one time: one that hangs holds up no other."""
_SHARE: Final = 5
"""All tries together rest for this many times what their plans take."""


class Tries:
    """Tries Workloads whenever that is worth it. Belongs to one event loop.

    attempt: a try; answers how many seconds its plan took. waiting: whom to try, the first of them
    first. pause: seconds between two rounds, at least.
    """

    def __init__(
        self,
        attempt: Callable[[Key], Awaitable[float]],
        waiting: Callable[[], Iterable[Key]],
        *,
        pause: float,
    ) -> None:
        self._attempt = attempt
        self._waiting = waiting
        self._pause = pause
        self._workers = Workers(_MOST)
        self._running: dict[Key, bool] = {}
        self._worth_it = asyncio.Event()

    def worth_it(self) -> None:
        """Room may have come up."""
        self._worth_it.set()

    async def run(self) -> None:
        """Tries until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._worth_it.wait()
                self._worth_it.clear()
                for key in self._waiting():
                    await self._workers.free()
                    if key in self._running:
                        self._running[key] = True
                    else:
                        self._workers.begin()
                        self._running[key] = False
                        trying = group.create_task(self._try(key), name=f"try {'/'.join(key)}")
                        trying.add_done_callback(partial(self._tried, key))
                await asyncio.sleep(self._pause)

    async def _try(self, key: Key) -> None:
        await asyncio.sleep(_MOST * _SHARE * await self._attempt(key))

    def _tried(self, key: Key, _trying: asyncio.Task[None]) -> None:
        self._workers.end()
        if self._running.pop(key):
            self.worth_it()  # Room came up meanwhile, which it may not have seen.
