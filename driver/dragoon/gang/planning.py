"""Asks the planner for one gang at a time, off the loop, and keeps what it promised.

Planning is the only thing here that burns CPU; a thread does it on an immutable snapshot.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from dragoon.allocator.gang.concern import Concern, concern
from dragoon.allocator.gang.model import Budget, GangAsk, NoRoom, Outcome, PlacementSnapshot
from dragoon.allocator.gang.vacating import vacate
from dragoon.api.gang import GangObject, Reservation
from dragoon.api.gang_plan import pack, stamp
from dragoon.gang.protocol import viewing
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.protocol.model import Member, Proposal
from dragoon.gang.questions import Questions
from dragoon.gang.records import PodRecord
from dragoon.gang.remembering import Case, Memory, Pace, Reporter
from dragoon.gang.turns import Turns
from dragoon.gang.waiting import ranking
from dragoon.gang.waiting.making_room import make_room
from dragoon.gang.waiting.ranking import Rank
from dragoon.gang.world import World
from dragoon.kube.backoff import Backoff

Planner = Callable[[PlacementSnapshot, GangAsk, Budget], Outcome]
Answer = TypeVar("Answer")

_SHARE: Final = 5
"""A gang that waits rests for this many times what its last plan took."""
_ADVICE_S: Final = 2.0
_ADVICE_REST: Final = 10
"""After a search for who could make room none is made for so many times what it took."""
_LEAST_TRIES: Final = 8
_MOST_TRIES: Final = 64
"""Plans that a search for who could make room may cost: as many as take so many seconds."""


class _Asked(NamedTuple):
    """What the planner was asked. pods: of the gang."""

    ask: GangAsk
    snapshot: PlacementSnapshot
    pods: Sequence[PodRecord]
    now: datetime

    @property
    def priority(self) -> int:
        return ranking.priority(self.pods)


class Planning:
    """The planner's door: one gang at a time, the first of the queue first.

    away: entered while a gang waits for its turn and has it.
    """

    def __init__(
        self,
        world: World,
        planner: Planner,
        reporter: Reporter,
        *,
        pace: Pace,
        away: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._world = world
        self._planner = planner
        self._reporter = reporter
        self._pace = pace
        self._away = away
        self._clock = clock
        self._turns = Turns(clock)
        self.questions = Questions(world)
        self._advice_due = 0.0

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
        if not memory.is_refused:
            return None
        if not memory.woken:
            return memory.retry_at
        return memory.planned_at + max(memory.pause, _SHARE * memory.planned_for)

    async def plan(
        self,
        case: Case,
        request: RequestPlan,
        memory: Memory,
        *,
        members: Sequence[Member],
        now: datetime,
        gives_way: Callable[[], bool],
    ) -> bool:
        """Puts the planner's answer into the memory; whether there is one.

        members: as the protocol saw them. gives_way: whether others are to be planned first. It is
        asked again when the gang's turn has come: what became free until then may be theirs.
        """
        if gives_way():
            return False
        asked = frozenset(request.pods)
        memory.faulty = bool(case.faults)
        if case.faults:
            # Room does not help: only a change of what was written does, and that asks again.
            memory.proposal = Proposal(asked, refusal=case.faults[0].message)
            memory.woken, memory.retry_at = False, None
            memory.planned_at = self._clock()
            return True
        with self._away():
            async with self._turns.turn(ranking.rank(case.gang, case.pods)):
                if gives_way():
                    return False
                outcome = await self._ask(case, request, memory, members=members, now=now)
        self._reporter.planned(outcome, memory.planned_for)
        return True

    async def _ask(
        self,
        case: Case,
        request: RequestPlan,
        memory: Memory,
        *,
        members: Sequence[Member],
        now: datetime,
    ) -> Outcome:
        """Asks and remembers the answer, while it is this gang's turn."""
        gang = case.gang
        memory.woken, memory.woken_at, memory.asked_at = False, None, self._clock()
        displaced = memory.displaced or frozenset()
        ask, placement = self.questions.ask(
            gang, case.pods, members, request, now=now, displaced=displaced
        )
        started = self._clock()
        outcome, memory.concern = await _in_thread(lambda: self._answer(placement, ask))
        memory.planned_at = self._clock()
        memory.planned_for = memory.planned_at - started
        memory.outcome = outcome
        memory.proposal = viewing.proposal_of(request.pods, outcome)
        if memory.proposal.refusal:
            self._slow_down(gang, memory)
            memory.retry_at = self._no_more_avoided(gang, now)
            asked_for = _Asked(ask, placement, case.pods, now)
            await self._advise(asked_for, memory)
            await self._reserve(asked_for, memory)
        else:
            memory.refusals = memory.vacated = memory.advised_at = None
            self.questions.propose(gang, memory.proposal.claims)
        return outcome

    async def probe(
        self,
        rank: Rank,
        *,
        question: Callable[[], tuple[GangAsk, PlacementSnapshot]],
        keep: Callable[[Outcome], None],
    ) -> float:
        """Asks for pods that are in no gang yet: nothing of it is remembered here.

        question: what is asked, made when its turn has come. keep: takes the answer before anybody
        else has a turn. Answers how many seconds planning took.
        """
        async with self._turns.turn(rank):
            ask, placement = question()
            started = self._clock()
            outcome = await _in_thread(lambda: self._planner(placement, ask, Budget()))
            seconds = self._clock() - started
            keep(outcome)
        self._reporter.planned(outcome, seconds)
        return seconds

    def _answer(self, placement: PlacementSnapshot, ask: GangAsk) -> tuple[Outcome, Concern | None]:
        outcome = self._planner(placement, ask, Budget())
        return outcome, concern(placement, ask) if isinstance(outcome, NoRoom) else None

    def _no_more_avoided(self, gang: GangObject, now: datetime) -> float | None:
        """When the first node that is avoided may be used again; None where none is."""
        ends = (datetime.fromisoformat(one.until) for one in gang.status.avoided)
        left = [(end - now).total_seconds() for end in ends if end > now]
        return self._clock() + min(left) + 1.0 if left else None

    def _slow_down(self, gang: GangObject, memory: Memory) -> None:
        """The next plan waits a little longer, and not in step with those of other gangs.

        Not that of a gang for which devices are kept: they are idle until it looks again.
        """
        if memory.refusals is None or gang.status.reservation is not None:
            memory.refusals = Backoff(first=self._pace.replan, limit=self._pace.slowest)
        memory.pause = memory.refusals.next()

    async def _advise(self, asked: _Asked, memory: Memory) -> None:
        """Looks for holders of lower priority that would be enough; seldom, it costs plans."""
        now = self._clock()
        due = memory.advised_at is None or now >= memory.advised_at + self._pace.advice
        if not due or now < self._advice_due or not memory.has_no_room or memory.is_hopeless:
            return
        everybody = self.questions.occupants(asked.pods, asked.now)
        tries = _tries(memory)
        memory.vacated = await _in_thread(
            lambda: make_room(
                asked.snapshot, asked.ask, everybody, priority=asked.priority, tries=tries
            )
        )
        memory.advised_at = self._clock()
        self._advice_due = memory.advised_at + _ADVICE_REST * (memory.advised_at - now)

    async def _reserve(self, asked: _Asked, memory: Memory) -> None:
        """Chooses what is kept for the gang: fewest holders to wait for, none more important."""
        if memory.displaced is None or not memory.has_no_room:
            return
        memory.displaced = None
        everybody = self.questions.occupants(asked.pods, asked.now)
        able = [one for one in everybody if one.claims and one.priority <= asked.priority]
        tries = _tries(memory)
        found = await _in_thread(
            lambda: vacate(asked.snapshot, asked.ask, able, by_priority=False, tries=tries)
        )
        if found is None:
            memory.in_vain_at = self._clock()
            return
        proposal = viewing.proposal_of((one.pod.uid for one in found.plan.placements), found.plan)
        memory.reservation = Reservation(
            since=stamp(asked.now),
            pools=proposal.pools,
            nodes=tuple(sorted({one.node for one in found.plan.placements})),
            packed=pack(proposal.claims),
        )


def _tries(memory: Memory) -> int:
    """How many plans a search may cost: as many as take two seconds."""
    tries = int(_ADVICE_S / max(memory.planned_for, _ADVICE_S / _MOST_TRIES))
    return max(_LEAST_TRIES, tries)


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
