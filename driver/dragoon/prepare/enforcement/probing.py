"""Probing the tiers of this node at start and then every minute, and telling what works."""

from collections.abc import Awaitable, Callable
from functools import partial

from dragoon.api.enforcement import NodeEnforcement
from dragoon.errors import DragoonError
from dragoon.gpu.aside import Patient
from dragoon.gpu.model import Inventory
from dragoon.prepare.clock import Clock, LoopClock
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.observing import Complaints, Observer, ignore
from dragoon.prepare.waiting import Backoff

PAUSE_S = 60.0
PATIENCE_S = 60.0
"""How long a probe may take; it allocates memory on a card."""


class Probing:
    """Keeps `enforcement.found` true. publish is told what was found first, and every change."""

    def __init__(
        self,
        enforcement: Enforcement,
        inventory: Callable[[], Awaitable[Inventory]],
        publish: Callable[[NodeEnforcement], None],
        *,
        clock: Clock | None = None,
        pause_s: float = PAUSE_S,
        observer: Observer = ignore,
    ) -> None:
        self._enforcement = enforcement
        self._inventory = inventory
        self._publish = publish
        self._clock = clock or LoopClock()
        self._pause_s = pause_s
        self._complaints = Complaints(observer)
        self._patient = Patient(PATIENCE_S)
        self._told: NodeEnforcement | None = None

    async def run(self) -> None:
        """Probes for ever. Without hardware to ask, what was found before stands."""
        backoff = Backoff()
        while True:
            try:
                await self.probe()
            except DragoonError as error:
                self._complaints.are({"": f"shares cannot be probed: {error}"})
                pause = backoff.next()
            else:
                self._complaints.are({})
                backoff, pause = Backoff(), self._pause_s
            await self._clock.sleep(pause)

    async def probe(self) -> NodeEnforcement:
        """Probes once. Raises HardwareError when the hardware cannot be looked at."""
        inventory = await self._inventory()
        found = await self._patient.ask(partial(self._enforcement.probe, inventory))
        if found != self._told:
            self._told = found
            self._publish(found)
        return found
