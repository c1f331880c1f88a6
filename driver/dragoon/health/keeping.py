"""Verdicts that last, read once and written when they change."""

import asyncio

from dragoon.health import remembering
from dragoon.health.port import Memory
from dragoon.health.settings import HealthSettings
from dragoon.health.verdict import Health


class Keeping:
    """The file of one process. Its methods raise StateError and may then be called again."""

    def __init__(self, memory: Memory, settings: HealthSettings) -> None:
        self._memory = memory
        self._settings = settings
        self._written: bytes | None = None
        self.recalled = False
        """Whether it was read; before that nothing is written over it."""

    async def recall(self) -> Health:
        """What lasts from before this process.

        A file that cannot be understood counts as read: the error is all that it leaves.
        """
        data = await asyncio.to_thread(self._memory.read)
        boot = await asyncio.to_thread(self._memory.boot_id)
        self.recalled = True
        if data is None:
            return {}
        found = remembering.decode(data, boot, self._settings)
        self._written = data
        return found

    async def remember(self, health: Health) -> None:
        """Writes what lasts of it, where that has changed."""
        boot = await asyncio.to_thread(self._memory.boot_id)
        data = remembering.encode(health, boot)
        if data != (self._written or remembering.encode({}, boot)):
            await asyncio.to_thread(self._memory.write, data)
            self._written = data
