"""Turns: who works on a claim now, and who comes next, within this process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial


@dataclass(eq=False)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Turns:
    """A fair lock for each key, gone when nobody uses it.

    The file locks of `effects` keep other processes out but have no order: an unprepare must not
    overtake a prepare of the same claim that came before it, or the prepare would never be undone.
    """

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<Turns {sorted(self._queues)}>"

    def __len__(self) -> int:
        return len(self._queues)

    async def take(self, key: str) -> Callable[[], None]:
        """Waits for this caller's turn, in order of arrival; answers what ends it.

        A caller that is cancelled while it waits has had no turn.
        """
        queue = self._queues.setdefault(key, _Queue())
        self._idle.clear()
        queue.users += 1
        try:
            await queue.lock.acquire()
        except BaseException:
            self._left(key, queue)
            raise
        return partial(self._end, key, queue)

    async def idle(self) -> None:
        """Returns when nobody has a turn or waits for one."""
        await self._idle.wait()

    def _end(self, key: str, queue: _Queue) -> None:
        queue.lock.release()
        self._left(key, queue)

    def _left(self, key: str, queue: _Queue) -> None:
        queue.users -= 1
        if not queue.users:
            del self._queues[key]
            if not self._queues:
                self._idle.set()
