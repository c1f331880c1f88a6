"""Kueue's part of the controller: nothing while Kueue is not there, the checker while it is."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import structlog

from dragoon.errors import DragoonError
from dragoon.gang.kueue.apis import GROUP, KNOWN, Apis, Unusable, choose
from dragoon.gang.kueue.checking import Checker
from dragoon.gang.kueue.deciding import Settings
from dragoon.gang.kueue.probing import Prober
from dragoon.gang.kueue.promising import PodsOfWorkloads, Rooms
from dragoon.gang.kueue.remembering import Reporter
from dragoon.gang.planning import Planning
from dragoon.gang.records import PodRecord
from dragoon.gang.world import World
from dragoon.kube.port import Api

_log = structlog.get_logger(__name__)

_EVERY_S: Final = 30.0


class Kueue:
    """Made once, before the informers run; runs while this process leads.

    api: writes of it may be throttled. room: called when a promise has ended. every: seconds
    between two looks at what the server has.
    """

    def __init__(
        self,
        api: Api,
        world: World,
        planning: Planning,
        *,
        reporter: Reporter,
        room: Callable[[], None],
        settings: Settings,
        every: float = _EVERY_S,
        replan: float = 1.0,
    ) -> None:
        self._api = api
        self._world = world
        self._planning = planning
        self._reporter = reporter
        self._room = room
        self._settings = settings
        self._every = every
        self._replan = replan
        self._rooms = Rooms()
        self._pods = PodsOfWorkloads(self._is_placed)
        self._checker: Checker | None = None
        self._settled = asyncio.Event()
        self._told: str | None = None
        world.copies.pods.subscribe(self._pods.see)

    def room_came_up(self) -> None:
        """Devices or nodes may have become free."""
        if self._checker is not None:
            self._checker.room_came_up()

    async def settled(self, within: float) -> None:
        """Waits until promises of a process before this one stand again, but not for longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._settled.wait()

    async def run(self) -> None:
        """Follows what is there of Kueue until cancelled.

        Raises ApiError where it cannot be asked.
        """
        self._settled.clear()
        while True:
            found = await self._find()
            self._tell(found)
            if isinstance(found, Apis):
                await self._serve(found)
            else:
                self._settled.set()
                await asyncio.sleep(self._every)

    async def _serve(self, apis: Apis) -> None:
        """Runs the checker while this is what there is."""
        prober = Prober(self._api, apis, self._world, self._planning, self._rooms)
        self._checker = Checker(
            self._api,
            apis,
            prober,
            rooms=self._rooms,
            pods=self._pods,
            room=self._room,
            reporter=self._reporter,
            settings=self._settings,
            replan=self._replan,
        )
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(self._checker.run(), name="kueue")
                settling = group.create_task(self._settle(self._checker))
                await self._until_changed(apis)
                running.cancel()
                settling.cancel()
        finally:
            self._checker = None

    async def _until_changed(self, apis: Apis) -> None:
        found: Apis | Unusable | None = apis
        while found == apis:
            await asyncio.sleep(self._every)
            try:
                found = await self._find()
            except DragoonError as error:
                _log.info("what there is of Kueue is not known", code=error.code, error=str(error))

    async def _settle(self, checker: Checker) -> None:
        await checker.settled.wait()
        self._settled.set()

    async def _find(self) -> Apis | Unusable | None:
        """What there is. Raises ApiError."""
        versions = (await self._api.groups()).get(GROUP, ())
        plurals = {
            version: await self._api.plurals(GROUP, version)
            for version in versions
            if version in KNOWN
        }
        return choose(versions, plurals)

    def _tell(self, found: Apis | Unusable | None) -> None:
        """Once for each state."""
        state = "absent"
        if isinstance(found, Apis):
            state = found.version
        elif isinstance(found, Unusable):
            state = found.reason
        self._reporter.kueue(state)
        if self._told == state:
            return
        if isinstance(found, Unusable):
            _log.warning("Kueue cannot be used", reason=found.reason, error=found.message)
        elif isinstance(found, Apis) or self._told is not None:
            _log.info("Kueue", state=state)
        self._told = state

    def _is_placed(self, pod: PodRecord) -> bool:
        if pod.node or self._world.planned_by(pod.uid):
            return True
        claims = [self._world.claim(pod.namespace, name) for name in pod.claims]
        return bool(claims) and all(
            claim is not None and (claim.get("status") or {}).get("allocation") for claim in claims
        )
