"""A node whose engine is overheard by a status writer: what tests of the writer start from."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from dragoon.api.claims import ClaimRef
from dragoon.kube.events import EventRecorder
from dragoon.kube.port import CLAIMS, EVENTS, Object
from dragoon.prepare.engine import Engine
from dragoon.prepare.observing import Event
from dragoon.prepare.status.writing import Pace, StatusWriter
from tests.unit.prepare.scene import Scene, settings


class Desk:
    """One plugin process: its engine, its writer, and the events that it recorded."""

    def __init__(self, scene: Scene, engine: Engine, **options: Any) -> None:
        self.scene = scene
        self.engine = engine
        self.recorder = EventRecorder(scene.api, "dragoon-plugin", "node-a")
        self.writer = StatusWriter(
            scene.api,
            settings(scene.root),
            engine.prepared_entry,
            self.recorder,
            clock=scene.clock,
            pace=options.pop("pace", Pace(prepared_s=0)),
            **options,
        )
        self._heard = len(scene.events)

    def hand_over(self) -> None:
        """Gives the writer what the engine has told since the last time."""
        events: list[Event] = self.scene.events[self._heard :]
        self._heard = len(self.scene.events)
        for event in events:
            self.writer.observe(event)

    async def statuses(self, claim: ClaimRef) -> list[Object]:
        found = await self.scene.api.get(CLAIMS, claim.name, namespace=claim.namespace)
        return list(found["status"].get("devices") or ())

    async def later(self, seconds: float) -> None:
        """Lets that time pass, and all that is due then be tried."""
        await self.settle()
        await self._asleep()
        self.scene.clock.advance(seconds)
        await self._asleep()

    async def _asleep(self) -> None:
        async with asyncio.timeout(60):
            while not self.scene.clock.sleeping:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def told(self, claim: ClaimRef) -> list[tuple[str, str]]:
        """Status and reason of Ready of each entry, when everything has been handed over."""
        await self.settle()
        return [ready(one) for one in await self.statuses(claim)]

    async def events(self, claim: ClaimRef) -> list[Object]:
        """What was recorded in the claim's namespace so far."""
        await self.recorder.flush()
        return list((await self.scene.api.list(EVENTS, namespace=claim.namespace)).items)

    @property
    def writes(self) -> int:
        """How often a claim's status was patched."""
        calls = self.scene.api.faults.calls
        return sum(one.verb == "patch" and one.resource == CLAIMS for one in calls)

    async def settle(self) -> None:
        """Hands over, and returns when all of it is written or put off."""
        self.hand_over()
        async with asyncio.timeout(60):
            await self.writer.flush()


def ready(entry: Object) -> tuple[str, str]:
    (found,) = (one for one in entry["conditions"] if one["type"] == "Ready")
    return found["status"], found["reason"]


@contextlib.asynccontextmanager
async def desk(scene: Scene, engine: Engine | None = None, **options: Any) -> AsyncIterator[Desk]:
    """A desk whose writer and recorder run."""
    found = Desk(scene, engine or await scene.started(), **options)
    tasks = [asyncio.create_task(found.writer.run()), asyncio.create_task(found.recorder.run())]
    try:
        yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
