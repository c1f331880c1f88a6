"""One run for many callers: a list of everything is the same for all who ask at the same time."""

import asyncio
from collections.abc import Awaitable, Callable


class Shared:
    """Runs `work` for whoever calls; every caller gets a run that began after its call.

    Belongs to one event loop. A run that fails fails all who wait for it.
    """

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self._running: asyncio.Future[object] | None = None
        self._next: asyncio.Future[object] | None = None

    async def __call__(self) -> None:
        if self._next is None:
            self._next = asyncio.ensure_future(self._run(self._running))
        # A caller that is cancelled must not take the run away from the others.
        await asyncio.shield(self._next)

    async def _run(self, before: "asyncio.Future[object] | None") -> object:
        if before is not None:
            await asyncio.wait({before})
        self._running, self._next = self._next, None
        return await self._work()
