"""Keeps devices for the largest gang that waits (`waiting.reserving` decides for which)."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import structlog

from dragoon.api.gang import GangObject
from dragoon.gang.asking import gang_ref
from dragoon.gang.looking import Looker
from dragoon.gang.pod_index import FamilyKey
from dragoon.gang.promised import pools_of
from dragoon.gang.protocol.actions import Reserve
from dragoon.gang.protocol.executing import Executor
from dragoon.gang.waiting import freed
from dragoon.gang.waiting.freed import Freed
from dragoon.gang.waiting.reserving import ReserveSettings, Waiting, decide, devices_asked
from dragoon.gang.world import World

_log = structlog.get_logger(__name__)


class Reserving:
    """Looks every few seconds.

    changed: asks for a look at a family. room: more may be used than before. counted: for how many
    gangs devices are kept.

    What is to be kept is chosen by the look at the gang itself; what ends is written here, and the
    gang's next look takes the rules away.
    """

    def __init__(
        self,
        world: World,
        looker: Looker,
        executor: Executor,
        *,
        settings: ReserveSettings,
        changed: Callable[[FamilyKey], None],
        room: Callable[[Freed], None],
        counted: Callable[[int], None],
        every: float = 5.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._world = world
        self._looker = looker
        self._executor = executor
        self._settings = settings
        self._changed = changed
        self._room = room
        self._counted = counted
        self._estimates: dict[str, datetime] = {}
        self._every = every
        self._now = now

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._every)

    async def look(self) -> None:
        """Looks once; a write that fails is tried again by the next look."""
        now = self._now()
        gangs = self._world.copies.gangs.values()
        concerned = [
            one for one in gangs if one.status.reservation or self._looker.line.waits(one.uid)
        ]
        self._tell_later_ends(concerned, now)
        self._counted(sum(one.status.reservation is not None for one in concerned))
        found = decide([self._waiting(one, now) for one in concerned], now, self._settings)
        displaced = frozenset(one.uid for one in found.displaced)
        for gang in found.starting:
            self._looker.line.let_reserve(gang.uid, displaced)
            self._changed(FamilyKey(gang.namespace, gang.group))
        if not found.ending:
            return
        outcome = await self._executor.execute(
            [Reserve(gang_ref(gang), None) for gang in found.ending]
        )
        for written in outcome.written:
            self._world.copies.observe(*written)
        for error in outcome.errors:
            _log.warning("reservation not ended", code=error.code, error=str(error))

    def _tell_later_ends(self, gangs: Iterable[GangObject], now: datetime) -> None:
        """What is kept may be used for longer if it is now known until when, or that is later."""
        kept = [found for one in gangs if (found := self._looker.keeping.kept(one, now))]
        ends = {one.gang.uid: one.estimate for one in kept if one.estimate is not None}
        for one in kept:
            uid, before = one.gang.uid, self._estimates.get(one.gang.uid)
            if uid in ends and (before is None or before < ends[uid]):
                self._room(freed.by_pools(pools_of(one.gang)))
        self._estimates = ends

    def _waiting(self, gang: GangObject, now: datetime) -> Waiting:
        pods = self._world.family(FamilyKey(gang.namespace, gang.group))
        names = {(pod.namespace, name) for pod in pods if pod.is_alive for name in pod.claims}
        claims = (self._world.claim(*name) for name in names)
        kept = self._looker.keeping.kept(gang, now)
        return Waiting(
            gang,
            priority=self._looker.keeping.priority(gang),
            devices=devices_asked(claim for claim in claims if claim is not None),
            has_no_room=self._looker.line.waits(gang.uid),
            is_spoiled=gang.status.reservation is not None and (kept is None or kept.is_spoiled),
            tried_in_vain=self._looker.line.was_in_vain(gang.uid),
        )
