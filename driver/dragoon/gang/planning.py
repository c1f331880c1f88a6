"""Asks the planner for one gang at a time, off the loop, and keeps what it promised.

Planning is the only thing here that burns CPU; a thread does it on an immutable snapshot.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

from dragoon.allocator.gang.concern import Concern, concern
from dragoon.allocator.gang.model import Budget, GangAsk, NoRoom, Outcome, PlacementSnapshot
from dragoon.api.gang import GangObject
from dragoon.gang.protocol import viewing
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.protocol.model import GangView, Proposal
from dragoon.gang.questions import Questions
from dragoon.gang.remembering import Case, Memory, Pace, Reporter
from dragoon.gang.turns import Turns
from dragoon.gang.waiting import ranking
from dragoon.gang.waiting.making_room import make_room
from dragoon.gang.world import World
from dragoon.kube.backoff import Backoff

Planner = Callable[[PlacementSnapshot, GangAsk, Budget], Outcome]
Answer = TypeVar("Answer")

_SHARE: Final = 5
"""A gang that waits rests for this many times what its last plan took."""
_ADVICE_S: Final = 2.0
_LEAST_TRIES: Final = 8
_MOST_TRIES: Final = 64
"""Plans that a search for who could make room may cost: as many as take so many seconds."""


class Planning:
    """The planner's door: one gang at a time, the first of the queue first."""

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
        self.questions = Questions(world)

    def settle(self, uid: str, memory: Memory) -> None:
        """Ends a promise that is journaled now, or not wanted any more.

        Not where a write failed: a journal whose answer was lost may stand.
        """
        if memory.unsettled:
            return
        if memory.proposal is not None and not memory.proposal.refusal:
            memory.proposal = None
        self.questions.drop(uid)

    def due(self, memory: Memory) -> float | None:
        """When to ask again: room may have come up since there was none. None: no reason to."""
        if not memory.is_refused or not memory.woken:
            return None
        return memory.planned_at + max(memory.pause, _SHARE * memory.planned_for)

    async def plan(
        self, gang: GangObject, case: Case, view: GangView, request: RequestPlan, memory: Memory
    ) -> None:
        """Puts the planner's answer into the memory."""
        asked = frozenset(request.pods)
        memory.faulty = bool(case.faults)
        if case.faults:
            # Room does not help: only a change of what was written does, and that asks again.
            memory.proposal = Proposal(asked, refusal=case.faults[0].message)
            memory.woken = False
            memory.planned_at = self._clock()
            return
        async with self._turns.turn(ranking.priority(case.pods), gang.created):
            memory.woken = False
            ask, placement = self.questions.ask(gang, case.pods, view.members, request, view.now)
            started = self._clock()
            outcome, memory.concern = await _in_thread(lambda: self._answer(placement, ask))
            memory.planned_at = self._clock()
            memory.planned_for = memory.planned_at - started
            memory.outcome = outcome
            memory.proposal = viewing.proposal_of(request.pods, outcome)
            if memory.proposal.refusal:
                self._slow_down(memory)
                await self._advise(case, view, memory, placement, ask)
            else:
                memory.refusals = memory.vacated = memory.advised_at = None
                self.questions.propose(gang, memory.proposal.claims)
        self._reporter.planned(outcome, memory.planned_for)

    def _answer(self, placement: PlacementSnapshot, ask: GangAsk) -> tuple[Outcome, Concern | None]:
        outcome = self._planner(placement, ask, Budget())
        return outcome, concern(placement, ask) if isinstance(outcome, NoRoom) else None

    def _slow_down(self, memory: Memory) -> None:
        """The next plan waits a little longer, and not in step with those of other gangs."""
        if memory.refusals is None:
            memory.refusals = Backoff(first=self._pace.replan, limit=self._pace.slowest)
        memory.pause = memory.refusals.next()

    async def _advise(
        self,
        case: Case,
        view: GangView,
        memory: Memory,
        placement: PlacementSnapshot,
        ask: GangAsk,
    ) -> None:
        """Looks for holders of lower priority that would be enough; now and then, it costs plans."""
        due = memory.advised_at is None or self._clock() >= memory.advised_at + self._pace.advice
        if not due or not isinstance(memory.outcome, NoRoom) or memory.is_hopeless:
            return
        occupants = self.questions.occupants(case.pods, view.now)
        tries = int(_ADVICE_S / max(memory.planned_for, _ADVICE_S / _MOST_TRIES))
        memory.vacated = await _in_thread(
            lambda: make_room(
                placement,
                ask,
                occupants,
                priority=ranking.priority(case.pods),
                tries=max(_LEAST_TRIES, tries),
            )
        )
        memory.advised_at = self._clock()


async def _in_thread(work: Callable[[], Answer]) -> Answer:
    """What planning answers. A thread cannot be stopped: whoever cancels waits for it too.

    Plans share what they find out about nodes, so no other may run beside it.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise
