"""Asks a divided card which of its instances an event is about."""

import asyncio
from functools import partial
from typing import Final

from dragoon.errors import HardwareError
from dragoon.gpu.aside import aside
from dragoon.gpu.condition import GpuEvent
from dragoon.gpu.port import MigCards
from dragoon.health.scope import Heard, heard, needs_instances

_PATIENCE_SECONDS: Final = 2.0
"""A card that does not say by then which instance an event is about is meant as a whole."""


async def scoped(mig: MigCards | None, event: GpuEvent) -> Heard:
    """The event with what it leaves alone; nothing where the card does not say it in time."""
    if mig is None or not needs_instances(event):
        return Heard(event)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await aside(partial(_resolved, mig, event))
    except (HardwareError, TimeoutError):
        return Heard(event)


def _resolved(mig: MigCards, event: GpuEvent) -> Heard:
    """Blocks."""
    if event.address is None:
        return Heard(event)
    return heard(event, mig.card(event.address), mig.instances(event.address))
