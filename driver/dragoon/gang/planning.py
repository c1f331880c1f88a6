"""Asks the planner for one gang at a time, off the loop, and keeps what it promised.

Planning is the only thing here that burns CPU; a thread does it on an immutable snapshot.
"""

import asyncio
import time
from collections.abc import Callable

from dragoon.allocator import Snapshot
from dragoon.allocator.gang.model import Budget, GangAsk, Outcome, PlacementSnapshot
from dragoon.api.gang import GangObject
from dragoon.api.gang_plan import PlannedClaim
from dragoon.gang import asking
from dragoon.gang.protocol import viewing
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.protocol.model import GangView, Proposal
from dragoon.gang.remembering import Case, Memory, Pace, Reporter
from dragoon.gang.turns import Turns
from dragoon.gang.world import World

Planner = Callable[[PlacementSnapshot, GangAsk, Budget], Outcome]


class Planning:
    """The planner's door. room: counts the times that devices or nodes may have become free."""

    def __init__(
        self,
        world: World,
        planner: Planner,
        reporter: Reporter,
        *,
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._world = world
        self._planner = planner
        self._reporter = reporter
        self._pace = pace
        self._clock = clock
        self._turns = Turns()
        self._unpacked = viewing.Unpacked()
        self._promises = asking.Promises(self.claims_of)
        self.room = 0

    def claims_of(self, gang: GangObject) -> tuple[PlannedClaim, ...]:
        """The claims of a journaled plan. Raises InvalidInputError for a damaged journal."""
        return self._unpacked.of(asking.gang_ref(gang), gang.status.plan)

    def snapshot(self, gang: GangObject) -> Snapshot:
        """The cluster with all that is promised to other gangs."""
        return self._promises.snapshot(self._world.state, gang, self._world.copies.gangs.values())

    def forget(self, uid: str) -> None:
        """A Gang is gone."""
        self._promises.drop(uid)
        self._unpacked.forget(uid)

    def settle(self, uid: str, memory: Memory) -> None:
        """Ends a promise that is journaled now, or not wanted any more.

        Not where a write failed: a journal whose answer was lost may stand.
        """
        if memory.unsettled:
            return
        if memory.proposal is not None and not memory.proposal.refusal:
            memory.proposal = None
        self._promises.drop(uid)

    def due(self, memory: Memory) -> float | None:
        """When to ask again: room may have come up since there was none. None: no reason to."""
        refused = memory.proposal is not None and bool(memory.proposal.refusal)
        if not refused or memory.room == self.room:
            return None
        return memory.planned_at + max(self._pace.replan, 5 * memory.planned_for)

    async def plan(
        self, gang: GangObject, case: Case, view: GangView, request: RequestPlan, memory: Memory
    ) -> None:
        """Puts the planner's answer into the memory."""
        asked = frozenset(request.pods)
        memory.faulty = bool(case.faults)
        if case.faults:
            # Room does not help: only a change of what was written does, and that asks again.
            memory.proposal = Proposal(asked, refusal=case.faults[0].message)
            memory.room = self.room
            memory.planned_at = self._clock()
            return
        priority = max((pod.priority for pod in case.pods), default=0)
        async with self._turns.turn(priority, gang.created):
            memory.room = self.room
            ask, placement = self._question(gang, case, view, request)
            started = self._clock()
            outcome = await self._in_thread(placement, ask)
            memory.planned_at = self._clock()
            memory.planned_for = memory.planned_at - started
            memory.outcome = outcome
            memory.proposal = viewing.proposal_of(request.pods, outcome)
            if not memory.proposal.refusal:
                self._promises.propose(gang, memory.proposal.claims)
        self._reporter.planned(outcome, memory.planned_for)

    async def _in_thread(self, placement: PlacementSnapshot, ask: GangAsk) -> Outcome:
        """The planner's answer. A thread cannot be stopped: whoever cancels waits for it too.

        Plans share what they find out about nodes, so no other may run beside it.
        """
        running = asyncio.ensure_future(asyncio.to_thread(self._planner, placement, ask, Budget()))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})
            raise

    def _question(
        self, gang: GangObject, case: Case, view: GangView, request: RequestPlan
    ) -> tuple[GangAsk, PlacementSnapshot]:
        world = self._world
        scene = asking.Scene(
            gang,
            gang.status.plan,
            {pod.uid: pod for pod in case.pods},
            view.members,
            world.claim,
        )
        asked = set(request.pods)
        ask = asking.gang_ask(scene, request, others=world.copies.gangs.values(), now=view.now)
        placement = PlacementSnapshot(
            cluster=self.snapshot(gang),
            nodes=world.node_facts(without=[pod.key for pod in case.pods if pod.uid in asked]),
            extended=world.extended(),
            priorities=world.priorities(),
        )
        return ask, placement
