"""One planner at a time: the more important gang first, then the older one."""

import asyncio
import contextlib
import heapq
from collections.abc import AsyncIterator


class Turns:
    """A lock whose waiters come in the order of their rank. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, str, int, asyncio.Future[None]]] = []
        self._busy = False
        self._count = 0

    @contextlib.asynccontextmanager
    async def turn(self, priority: int, created: str) -> AsyncIterator[None]:
        """Waits for a turn. priority: more comes first. created: RFC 3339, the older first."""
        await self._enter(priority, created)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, priority: int, created: str) -> None:
        if not self._busy:
            self._busy = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._waiting, (-priority, created, self._count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # It was given just before: pass it on.
            raise

    def _leave(self) -> None:
        while self._waiting:
            turn = heapq.heappop(self._waiting)[-1]
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False
