"""One look at one gang: what is seen, what the protocol decides, what is written, what is told.

A look may be cut off anywhere: the next one, of this process or another, goes on from the API.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

import structlog

from dragoon.api.gang import GangObject
from dragoon.errors import InvalidInputError
from dragoon.gang import asking
from dragoon.gang.line import Line
from dragoon.gang.planning import Planner, Planning
from dragoon.gang.protocol.actions import (
    Action,
    Journal,
    Note,
    Relist,
    RequestPlan,
    Reserve,
    StartWait,
    WaitUntil,
)
from dragoon.gang.protocol.deciding import decide
from dragoon.gang.protocol.executing import Executor
from dragoon.gang.protocol.model import Member, Settings
from dragoon.gang.provisioning.asking_for_nodes import Provisioning
from dragoon.gang.remembering import Case, Memory, Pace, Reporter
from dragoon.gang.seeing import Seeing
from dragoon.gang.telling import Telling
from dragoon.gang.waiting.keeping import Keeping
from dragoon.gang.waiting.ranking import rank
from dragoon.gang.workers import Workers
from dragoon.gang.world import World
from dragoon.kube.port import Api

_log = structlog.get_logger(__name__)

_Answer = TypeVar("_Answer")

_ROUNDS: Final = 20
"""Answers of the protocol in one look that ask for another one at once; then others have a turn."""


class Looker:
    """Looks at gangs. again: asks for another look at a gang at a tick of `clock`.

    workers: looks at one time, those apart that wait for the planner.
    """

    def __init__(
        self,
        api: Api,
        world: World,
        planner: Planner,
        *,
        settings: Settings,
        reporter: Reporter,
        again: Callable[[GangObject, float], None],
        provisioning: Provisioning | None = None,
        executor: Executor | None = None,
        pace: Pace | None = None,
        workers: int = 8,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._world = world
        self._settings = settings
        self._reporter = reporter
        self._again = again
        self._provisioning = provisioning
        self._executor = executor or Executor(api)
        self._pace = pace or Pace()
        self._clock = clock
        self.workers = Workers(workers)
        self._planning = Planning(
            world, planner, reporter, pace=self._pace, away=self.workers.away, clock=clock
        )
        self._seeing = Seeing(
            world, self._planning.questions, settings=settings, clock=clock, now=now
        )
        self._telling = Telling(
            api,
            world,
            reporter,
            pace=self._pace,
            stuck_after=settings.stuck_after,
            keeping=self._planning.questions.keeping,
            provisioning=provisioning,
            again=again,
            clock=clock,
            now=now,
        )
        self._memory: defaultdict[str, Memory] = defaultdict(Memory)
        self.line = Line(self._memory, pace=self._pace, clock=clock)

    @property
    def planning(self) -> Planning:
        """The planner's door: Workloads of Kueue are asked for there too."""
        return self._planning

    @property
    def keeping(self) -> Keeping:
        """What is kept for gangs that wait."""
        return self._planning.questions.keeping

    def forget(self, uid: str) -> None:
        """A Gang is gone."""
        self._memory.pop(uid, None)
        self._planning.questions.forget(uid)
        if self._provisioning is not None:
            self._provisioning.forget(uid)

    def forget_all(self) -> None:
        """This process did not lead until now."""
        for uid in list(self._memory):
            self.forget(uid)

    async def look(self, case: Case) -> None:
        """Takes a gang as far as it goes now, then writes how it stands."""
        try:
            await self._look(case)
        finally:
            if self._seeing.now_of(case) is None:
                # It was deleted meanwhile: what was remembered since is for nobody.
                self.forget(case.gang.uid)

    async def _look(self, case: Case) -> None:
        memory = self._memory[case.gang.uid]
        due = self._planning.due(memory)
        mended = memory.faulty and not case.faults
        if mended or (due is not None and due <= self._clock()):
            memory.proposal = None
        memory.unsettled = False
        notes: tuple[Note, ...] = ()
        listed = journaled = False
        members: tuple[Member, ...] = ()
        for _ in range(_ROUNDS):
            seen = self._seeing.now_of(case)
            if seen is None:
                return
            case = seen
            try:
                view = self._seeing.view(case, memory, listed=listed)
            except InvalidInputError as error:
                # Somebody edited the journal: what it promised is not known, so nothing is done.
                self._reporter.noted(case.gang, Note("DamagedPlan", error.message))
                return
            members, now = view.members, view.now
            actions = decide(view, self._settings)
            del view  # Of all that wait for the planner none may keep a snapshot.
            notes = tuple(one for one in actions if isinstance(one, Note))
            journals = any(isinstance(one, Journal) for one in actions)
            carrying_out = self._carry_out(case, actions, members=members, now=now)
            if journaled and not journals:
                # A step of a large gang takes seconds: people see which one it is.
                telling = self._telling.tell(case, members, notes, memory)
                again, listed = await _beside(carrying_out, telling)
            else:
                again, listed = await carrying_out
            journaled = journals
            if not again:
                break
        else:
            self._again(case.gang, self._clock())
        self._planning.settle(case.gang.uid, memory)
        # Room may also have come up while the planner was thinking: nobody else wakes the gang.
        due = self._planning.due(memory)
        if due is not None:
            self._again(case.gang, due)
        await self._help_waiting(case, memory)
        await self._telling.tell(case, members, notes, memory)

    async def _help_waiting(self, case: Case, memory: Memory) -> None:
        """Journals what is to be kept for a gang (its next look fences that); asks for nodes."""
        found, memory.reservation = memory.reservation, None
        gang = self._world.copies.gangs.get(case.gang.name, case.gang.namespace)
        if gang is None or gang.uid != case.gang.uid or gang.status.plan is not None:
            return
        if found is not None and await self._write(gang, [Reserve(asking.gang_ref(gang), found)]):
            self._again(gang, self._clock())
        asked = self._provisioning is None or await self._provisioning.ask(
            gang, case.pods, has_no_room=memory.has_no_room
        )
        if not asked:
            self._again(gang, self._clock() + memory.backoff.next())

    async def _carry_out(
        self,
        case: Case,
        actions: Iterable[Action],
        *,
        members: Sequence[Member],
        now: datetime,
    ) -> tuple[bool, bool]:
        """Whether to look again at once, and whether all claims have just been listed."""
        gang = case.gang
        memory = self._memory[gang.uid]
        again = listed = False
        writes: list[Action] = []
        for action in actions:
            match action:
                case StartWait(wait):
                    memory.wait = wait
                    again = True
                case WaitUntil(tick):
                    self._again(gang, tick)
                case RequestPlan():
                    answered = await self._planning.plan(
                        case,
                        action,
                        memory,
                        members=members,
                        now=now,
                        gives_way=partial(self._gives_way, case, memory),
                    )
                    again = answered or again
                case Relist():
                    await self._world.copies.refresh_claims()
                    again = listed = True
                case Note():
                    pass
                case _:
                    writes.append(action)
        if writes:
            again = await self._write(gang, writes) or again
        return again, listed

    def _gives_way(self, case: Case, memory: Memory) -> bool:
        """Whether others are planned first; they are asked to, and this one comes again."""
        gang = case.gang
        if gang.status.plan is not None:
            return False
        ahead = set(self.line.ahead_of(memory, rank(gang, case.pods)))
        for other in self._world.copies.gangs.values() if ahead else ():
            if other.uid in ahead:
                self._again(other, self._clock())
        if ahead:
            self._again(gang, self._clock() + self._pace.conflict)
        return bool(ahead)

    async def _write(self, gang: GangObject, writes: Sequence[Action]) -> bool:
        """Whether something was written that the copies show already."""
        outcome = await self._executor.execute(writes)
        for resource, written in outcome.written:
            self._world.copies.observe(resource, written)
        memory = self._memory[gang.uid]
        memory.unsettled = bool(outcome.errors or outcome.conflicts)
        for error in outcome.errors:
            self._reporter.failed(error)
            _log.warning("write failed", gang=str(gang), code=error.code, error=str(error))
            if not error.retryable:
                self._reporter.noted(gang, Note("WriteFailed", error.message))
        if outcome.errors:
            self._again(gang, self._clock() + memory.backoff.next())
        elif outcome.conflicts:
            self._again(gang, self._clock() + self._pace.conflict)
        else:
            memory.backoff.reset()
        return bool(outcome.written) and not memory.unsettled


async def _beside(work: Awaitable[_Answer], other: Coroutine[Any, Any, None]) -> _Answer:
    """What work answers, when both are through. Where work fails the other is cut off."""
    task = asyncio.create_task(other)
    try:
        answer = await work
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    await task
    return answer
