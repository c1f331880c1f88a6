"""The loops: a look at every Workload that changed, and at those that wait when room came up.

Looks at different Workloads run beside each other: each waits for its own turn at the planner, where
the more important one comes first.
"""

import asyncio
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import structlog

from dragoon.errors import ApiConflictError, ApiNotFoundError, DragoonError
from dragoon.gang.kueue.actions import Action, Again, Ask, Drop, Say, Wake
from dragoon.gang.kueue.answering import Answer, Verdict
from dragoon.gang.kueue.apis import CONTROLLER, Apis
from dragoon.gang.kueue.deciding import Settings, View, decide, decide_check, wait_before
from dragoon.gang.kueue.executing import Executor
from dragoon.gang.kueue.model import Check, State, Workload
from dragoon.gang.kueue.probing import Asked, Prober
from dragoon.gang.kueue.promising import PodsOfWorkloads, Rooms
from dragoon.gang.kueue.reading import check_of, workload_of
from dragoon.gang.kueue.remembering import Memory, Reporter
from dragoon.gang.kueue.trying import Tries
from dragoon.gang.queueing import Queue
from dragoon.kube.backoff import Backoff
from dragoon.kube.informer import Informer
from dragoon.kube.mirror import Change, Key
from dragoon.kube.port import Api

_log = structlog.get_logger(__name__)

_ROUNDS: Final = 4
_CONFLICT_S: Final = 0.2
_FIRST_PAUSE_S: Final = 0.5
_LAST_PAUSE_S: Final = 30.0
"""After looks that failed."""
_SHARE: Final = 5
"""Between two plans of one Workload so many times what the last one took passes."""
_PAGE: Final = 500


class Checker:
    """Checks Workloads of one API version of Kueue until cancelled.

    pods: those that carry a Workload's UID. room: called when a promise has ended. replan: seconds
    between two plans of one Workload, at least.
    """

    def __init__(
        self,
        api: Api,
        apis: Apis,
        prober: Prober,
        *,
        rooms: Rooms,
        pods: PodsOfWorkloads,
        room: Callable[[], None],
        reporter: Reporter,
        settings: Settings,
        replan: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._executor = Executor(api, apis)
        self._prober = prober
        self._rooms = rooms
        self._pods = pods
        self._room = room
        self._reporter = reporter
        self._settings = settings
        self._replan = replan
        self._clock = clock
        self._now = now
        self._since = now()
        self._queue: Queue[Key] = Queue(clock)
        self._memory: defaultdict[str, Memory] = defaultdict(Memory)
        self._backoffs: defaultdict[Key, Backoff] = defaultdict(
            lambda: Backoff(first=_FIRST_PAUSE_S, limit=_LAST_PAUSE_S)
        )
        self._keys: dict[str, Key] = {}
        self._came_up = asyncio.Event()
        self._tries = Tries(partial(self._guarded, waking=True), self._sent_back, pause=replan)
        # Between a promise and the write that tells of it nobody else may judge the Workload.
        self._looking: weakref.WeakValueDictionary[Key, asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )
        self.settled = asyncio.Event()
        """Every promise that a process before this one made has been made again, if it could be."""
        self._workloads: Informer[Workload] = Informer(
            api, apis.workloads, decode=workload_of, page=_PAGE
        )
        self._checks: Informer[Check] = Informer(api, apis.checks, decode=check_of)
        self._workloads.subscribe(self._workload)
        self._checks.subscribe(self._check)

    async def run(self) -> None:
        """Looks until cancelled; promises end with it."""
        self._pods.changed = self._pod
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._workloads.run(), name="watch workloads")
                group.create_task(self._checks.run(), name="watch admissionchecks")
                await self._workloads.synced()
                await self._checks.synced()
                await self._rebuild()
                self.settled.set()
                group.create_task(self._work(group), name="checks")
                group.create_task(self._wake(), name="waking")
                group.create_task(self._tries.run(), name="trying again")
        finally:
            self._pods.changed = lambda _uid: None
            for uid in list(self._keys):
                self._drop(uid)

    def room_came_up(self) -> None:
        """Devices or nodes may have become free."""
        self._came_up.set()

    def _workload(self, change: Change[Workload]) -> None:
        if change.old is not None and change.new is None:
            uid = change.old.ref.uid
            self._keys.pop(uid, None)
            self._memory.pop(uid, None)
            self._backoffs.pop(change.key, None)
            self._queue.forget(change.key)
            self._drop(uid)
        if change.new is not None:
            self._keys[change.new.ref.uid] = change.key
            if change.new.is_over or not self._ours(change.new):
                self._memory.pop(change.new.ref.uid, None)
            self._changed(change.key)

    def _check(self, change: Change[Check]) -> None:
        self._queue.add(Key("", change.key.name))
        for workload in self._workloads.values():
            if any(one.name == change.key.name for one in workload.checks):
                self._changed(workload.key)

    def _pod(self, uid: str) -> None:
        if (key := self._keys.get(uid)) is not None:
            self._changed(key)

    def _changed(self, key: Key) -> None:
        workload = self._workloads.get(key.name, key.namespace)
        rested = 0.0 if workload is None else self._memory.get(workload.ref.uid, Memory()).rested
        if rested > self._clock():
            self._queue.add_at(key, rested)
        else:
            self._queue.add(key)

    async def _rebuild(self) -> None:
        """The Workloads that may start and whose pods are not placed, the first of them first."""
        started = [one for one in self._workloads.values() if one.may_start]
        started.sort(key=lambda one: (max(check.since for check in one.checks), str(one)))
        for workload in started:
            await self._guarded(workload.key)

    async def _work(self, group: asyncio.TaskGroup) -> None:
        while True:
            key = await self._queue.take()
            looking = group.create_task(self._guarded(key), name=f"check {'/'.join(key)}")
            looking.add_done_callback(partial(self._looked, key))

    def _looked(self, key: Key, _looking: asyncio.Task[float]) -> None:
        self._queue.done(key)

    async def _wake(self) -> None:
        """When room came up: those that hold quota for it."""
        while True:
            await self._came_up.wait()
            self._came_up.clear()
            for workload in self._workloads.values():
                if workload.reserved and not workload.admitted and not workload.is_over:
                    self._changed(workload.key)
            self._tries.worth_it()
            await asyncio.sleep(self._replan)

    def _sent_back(self) -> list[Key]:
        """Those that wait for the time of their next try, with or without their quota.

        They have the last turn at the planner, for which nobody else is to wait.
        """
        found = (one for one in self._workloads.values() if one.waits)
        return [o.key for o in sorted(found, key=lambda o: (-o.priority, o.created, str(o)))]

    async def _guarded(self, key: Key, *, waking: bool = False) -> float:
        """A look; one that fails comes again and costs nobody else. Seconds of planning."""
        seconds = 0.0
        try:
            if key.namespace:
                async with self._looking.setdefault(key, asyncio.Lock()):
                    seconds = await self._look(key, waking=waking)
            else:
                await self._look_at_check(key.name)
            self._backoffs.pop(key, None)
        except ApiConflictError:
            self._queue.add_at(key, self._clock() + _CONFLICT_S)
        except ApiNotFoundError:
            pass  # It is gone: the watch shows that.
        except DragoonError as error:
            self._later(key)
            _log.warning("check failed", object="/".join(key), code=error.code, error=str(error))
        except Exception:  # noqa: BLE001 - one Workload must not cost the others
            self._later(key)
            _log.exception("check failed unexpectedly", object="/".join(key))
        return seconds

    def _later(self, key: Key) -> None:
        self._queue.add_at(key, self._clock() + self._backoffs[key].next())

    async def _look_at_check(self, name: str) -> None:
        check = self._checks.get(name)
        action = None if check is None else decide_check(check, self._now())
        if action is not None:
            self._checks.observe(await self._executor.set_conditions(action))
            _log.info("admission check", name=name, active=action.conditions[-1]["status"])

    async def _look(self, key: Key, *, waking: bool) -> float:
        """Takes a Workload as far as it goes now."""
        answer: Answer | None = None
        asked_at, seconds = "", 0.0
        for _ in range(_ROUNDS):
            workload = self._workloads.get(key.name, key.namespace)
            if workload is None:
                return seconds
            if workload.ref.version != asked_at:
                answer = None  # It was given for another one.
            actions = decide(self._view(workload, answer, waking=waking), self._settings)
            ask = next((one for one in actions if isinstance(one, Ask)), None)
            if ask is None:
                await self._carry_out(key, workload, actions)
                return seconds
            asked = await self._ask(workload, hold=ask.hold)
            answer, asked_at, seconds = asked.answer, workload.ref.version, asked.seconds
        self._queue.add_at(key, self._clock() + _CONFLICT_S)
        return seconds

    def _view(self, workload: Workload, answer: Answer | None, *, waking: bool) -> View:
        memory, uid = self._memory.get(workload.ref.uid, Memory()), workload.ref.uid
        return View(
            workload,
            self._ours(workload),
            self._now(),
            self._clock(),
            self._since,
            answer=answer,
            promised=uid in self._rooms,
            rebuilt=memory.rebuilt,
            pods=self._pods.of(workload.ref),
            not_before=memory.not_before,
            known=memory.known,
            reminded=memory.reminded,
            waking=waking,
        )

    def _ours(self, workload: Workload) -> frozenset[str]:
        """The names of its checks that are ours."""
        found = ((one.name, self._checks.get(one.name)) for one in workload.checks)
        return frozenset(
            name for name, check in found if check is not None and check.controller == CONTROLLER
        )

    async def _ask(self, workload: Workload, *, hold: bool) -> Asked:
        memory = self._memory[workload.ref.uid]
        asked = await self._prober.ask(workload, hold=hold)
        if workload.ref.uid not in self._keys:
            self._drop(workload.ref.uid)  # It was deleted while it was planned.
        self._reporter.promises(len(self._rooms))
        memory.rebuilt |= hold
        memory.rested = self._clock() + max(self._replan, _SHARE * asked.seconds)
        lasted = memory.never_for(self._clock(), never=asked.answer.verdict is Verdict.NEVER)
        return Asked(replace(asked.answer, never_for=lasted), asked.seconds)

    async def _carry_out(self, key: Key, workload: Workload, actions: Collection[Action]) -> None:
        for action in actions:
            match action:
                case Drop(why):
                    self._drop(workload.ref.uid)
                    _log.info("promise ended", workload=str(workload), why=why)
                case Again(tick):
                    self._queue.add_at(key, tick)
                case Wake():
                    memory = self._memory[workload.ref.uid]
                    self._workloads.observe(await self._executor.wake(action))
                    memory.not_before = 0.0
                    _log.info("workload woken", workload=str(workload))
                case Say():
                    await self._say(workload, action)

    async def _say(self, workload: Workload, action: Say) -> None:
        memory = self._memory[workload.ref.uid]
        self._workloads.observe(await self._executor.say(action))
        if action.state is None:
            memory.known, memory.reminded = action.message, self._clock()
            return
        if action.state is State.RETRY:
            view = self._view(workload, None, waking=False)
            memory.known, memory.reminded = action.message, 0.0
            memory.not_before = self._clock() + wait_before(view, self._settings)
        self._reporter.checked(action.workload, str(action.state), action.message)

    def _drop(self, uid: str) -> None:
        if uid in self._rooms:
            self._prober.drop(uid)
            self._reporter.promises(len(self._rooms))
            self._room()
