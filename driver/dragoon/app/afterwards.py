"""Telling of calls a moment after their answers.

A line in the log and its metrics take a tenth of the time of a prepare, and a pod that starts waits
for all of it. Told afterwards they cost nobody anything: the next thing that a call does is wait.
"""

import asyncio
import contextvars
from typing import Final

from dragoon.prepare.observing import Event, Finished, Observer

MOMENT_SECONDS: Final = 0.002


class Afterwards:
    """An observer of prepare that passes on at once what may come from threads, and calls later.

    Belongs to one event loop. Calls are told in their order, each in its own context. A process
    that is killed within the moment loses their lines; the journal has the claims.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._calls: list[tuple[contextvars.Context, Finished]] = []

    def observe(self, event: Event) -> None:
        """An event of prepare."""
        if not isinstance(event, Finished):
            self._observer(event)
            return
        if not self._calls:
            asyncio.get_running_loop().call_later(MOMENT_SECONDS, self.tell)
        self._calls.append((contextvars.copy_context(), event))

    def tell(self) -> None:
        """Tells now of the calls that have not been told."""
        calls, self._calls = self._calls, []
        for context, event in calls:
            context.run(self._observer, event)
