"""A watch over cards that are faked: what tests of the watch start from."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from dragoon.gpu.condition_memory import MemoryConditions, MemoryEvents
from dragoon.gpu.mig_memory import MemoryMigCards
from dragoon.gpu.model import Inventory
from dragoon.gpu.port import GpuEvents
from dragoon.health.observing import Changed, Event, Trouble
from dragoon.health.port import FakeMemory
from dragoon.health.verdict import Kind
from dragoon.health.watching import HealthWatch, Pace, Sources
from tests.unit.health.cards import TWO, at, says

FAST = Pace(events=0.002, conditions=3600, retry=0.005, pause=0.0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def said(watch: HealthWatch, number: int) -> list[tuple[Kind, str]] | None:
    """What a card's health says; None while there is none: the watch has just begun."""
    card = watch.health.get(at(number))
    return None if card is None else says(card)


@dataclass
class Bench:
    """A watch with everything around it faked."""

    events: MemoryEvents = field(default_factory=MemoryEvents)
    conditions: MemoryConditions = field(default_factory=MemoryConditions)
    memory: FakeMemory = field(default_factory=FakeMemory)
    mig: MemoryMigCards | None = None
    told: list[Event] = field(default_factory=list)
    looks: int = 0

    def watch(self, events: GpuEvents | None = None, pace: Pace = FAST) -> HealthWatch:
        def look() -> None:
            self.looks += 1

        return HealthWatch(
            Sources(events or self.events, self.conditions, self.mig),
            self.memory,
            look=look,
            observer=self.told.append,
            pace=pace,
            now=lambda: 1000.0,
        )

    @contextlib.asynccontextmanager
    async def watching(self, inventory: Inventory | None = TWO) -> AsyncIterator[HealthWatch]:
        watch = self.watch()
        async with running(watch):
            if inventory is not None:
                watch.show(inventory)
                cards = {card.address for card in inventory.cards}
                await until(lambda: cards <= set(watch.health) and self.events.polled > 0)
            yield watch

    def changes(self) -> list[Changed]:
        return [event for event in self.told if isinstance(event, Changed)]

    def troubles(self) -> list[tuple[str, bool]]:
        return [
            (event.what, event.error is not None)
            for event in self.told
            if isinstance(event, Trouble)
        ]


@contextlib.asynccontextmanager
async def running(watch: HealthWatch) -> AsyncIterator[None]:
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled(), task.exception()
