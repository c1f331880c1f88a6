"""Asks a divided card which of its instances an event is about."""

from functools import partial
from typing import Final

from dragoon.errors import HardwareError
from dragoon.gpu.aside import Patients
from dragoon.gpu.condition import GpuEvent
from dragoon.gpu.port import MigCards
from dragoon.health.scope import Heard, heard, needs_instances

_PATIENCE_SECONDS: Final = 2.0
"""A card that does not say by then which instance an event is about is meant as a whole."""


class Scopes:
    """What events are about. mig: None where cards are never divided."""

    def __init__(self, mig: MigCards | None) -> None:
        self._mig = mig
        # A card that hangs may go on raising errors, and each call that hangs is a thread.
        self._patients = Patients(_PATIENCE_SECONDS)

    async def of(self, event: GpuEvent) -> Heard:
        """The event with what it leaves alone; nothing where the card does not say it in time."""
        if self._mig is None or event.address is None or not needs_instances(event):
            return Heard(event)
        try:
            return await self._patients.ask(event.address, partial(_resolved, self._mig, event))
        except HardwareError:
            return Heard(event)


def _resolved(mig: MigCards, event: GpuEvent) -> Heard:
    """Blocks."""
    if event.address is None:
        return Heard(event)
    return heard(event, mig.card(event.address), mig.instances(event.address))
