"""Writes how a gang stands, where that differs from what it says."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from dragoon.allocator.gang.model import NoRoom, Outcome
from dragoon.allocator.gang.vacating import Vacated
from dragoon.api.gang import GangObject, GangStatus
from dragoon.errors import ApiConflictError
from dragoon.gang.protocol.actions import Note
from dragoon.gang.protocol.model import Member
from dragoon.gang.provisioning.asking_for_nodes import Provisioning
from dragoon.gang.remembering import Case, Memory, Pace, Reporter
from dragoon.gang.standing.sight import Sight
from dragoon.gang.standing.telling import is_urgent, merge_patch, status_of
from dragoon.gang.waiting.keeping import Keeping
from dragoon.gang.waiting.making_room import told
from dragoon.gang.world import World
from dragoon.kube.port import GANGS, Api


class Telling:
    """The writer of statuses. again: asks for another look at a gang at a tick of `clock`."""

    def __init__(
        self,
        api: Api,
        world: World,
        reporter: Reporter,
        *,
        pace: Pace,
        stuck_after: float,
        keeping: Keeping,
        provisioning: Provisioning | None,
        again: Callable[[GangObject, float], None],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._world = world
        self._reporter = reporter
        self._pace = pace
        self._stuck_after = stuck_after
        self._keeping = keeping
        self._provisioning = provisioning
        self._again = again
        self._clock = clock
        self._now = now

    async def tell(
        self, case: Case, members: Sequence[Member], notes: Sequence[Note], memory: Memory
    ) -> None:
        """Writes the status where it differs, and says once what is new."""
        gang = self._world.copies.gangs.get(case.gang.name, case.gang.namespace)
        if gang is None or gang.uid != case.gang.uid or gang.deleting:
            return
        for note in frozenset(notes) - memory.notes:
            if note.warning:
                self._reporter.noted(gang, note)
        memory.notes = frozenset(notes)
        sight = Sight(
            gang=gang,
            members=members,
            now=self._now(),
            plan=gang.status.plan,
            faults=case.faults,
            ungated=case.ungated,
            outcome=memory.outcome,
            notes=notes,
            blockers=self._blockers(memory.outcome),
            room=self._room(memory.vacated),
            kept=self._kept(gang),
            provisioned=self._provisioned(gang, case, memory),
            hints=case.hints,
            stuck_after=self._stuck_after,
        )
        if sight.deadline is not None and not sight.is_late:
            left = (sight.deadline - sight.now).total_seconds()
            self._again(gang, self._clock() + left)
        await self._write_status(gang, status_of(sight), memory)

    async def _write_status(self, gang: GangObject, new: GangStatus, memory: Memory) -> None:
        patch = merge_patch(gang.status, new)
        if not patch:
            return
        due = memory.told_at + self._pace.status
        if memory.told_at and not is_urgent(gang.status, new) and self._clock() < due:
            self._again(gang, due)
            return
        meta = {"uid": gang.uid, "resourceVersion": gang.version}
        try:
            stored = await self._api.patch(
                GANGS,
                gang.name,
                {"metadata": meta, "status": patch},
                namespace=gang.namespace,
                subresource="status",
            )
        except ApiConflictError:
            self._again(gang, self._clock() + self._pace.conflict)
            return
        memory.told_at = self._clock()
        self._world.copies.observe(GANGS, stored)

    def _kept(self, gang: GangObject) -> str:
        """What is kept for the gang and for whom it waits, in words."""
        found = self._keeping.kept(gang, self._now())
        return "" if found is None else found.told()

    def _provisioned(
        self, gang: GangObject, case: Case, memory: Memory
    ) -> tuple[str, str, str] | None:
        """What came of asking an autoscaler for nodes."""
        if self._provisioning is None:
            return None
        return self._provisioning.told(gang, case.pods, has_no_room=memory.has_no_room)

    def _room(self, vacated: Vacated | None) -> tuple[str, ...]:
        """Who could make room, while all of them are there."""
        if vacated is None or not vacated.occupants:
            return ()
        named = (pod.partition("/") for pod in vacated.pods)
        there = all(
            self._world.copies.pods.get(name, namespace) is not None for namespace, _, name in named
        )
        return told(vacated) if there else ()

    def _blockers(self, outcome: Outcome | None) -> tuple[str, ...]:
        """The gangs that hold what would help."""
        if not isinstance(outcome, NoRoom) or outcome.change is None:
            return ()
        found = {
            name
            for label in outcome.change.claims
            if (name := self._world.gang_using(*label.partition("/")[::2]))
        }
        return tuple(sorted(found))
