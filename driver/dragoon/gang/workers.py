"""How many look at gangs at one time, those apart that wait for the planner."""

import asyncio
import contextlib
from collections.abc import Iterator


class Workers:
    """So many at one time. Belongs to one event loop.

    Who waits for the planner is not at work: else a few gangs that wait their turn there would keep
    everybody from those that are being placed, and a gang of high priority from its turn.
    """

    def __init__(self, count: int) -> None:
        self._left = count
        self._changed = asyncio.Event()

    async def free(self) -> None:
        """Waits until another one may begin."""
        while self._left <= 0:
            self._changed.clear()
            await self._changed.wait()

    def begin(self) -> None:
        """One more is at work."""
        self._left -= 1

    def end(self) -> None:
        """One is done."""
        self._left += 1
        self._changed.set()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Somebody else may work meanwhile; whoever was away goes on at once."""
        self.end()
        try:
            yield
        finally:
            self.begin()
