"""Prepares and unprepares claims: reads, waits, and hands what was planned to the executor.

How the kubelet's calls are met (the numbers are those of tests/unit/prepare/test_calls.py):

- a failed prepare comes back only after 60 to 90 s (1), so what may pass is waited for in the call;
- a second call for the same claim joins the first (8) and renews its budget;
- the kubelet cancels a call at its deadline and when it dies (7): effects that have begun are
  finished, and what has not begun is dropped, since nobody would know of it;
- while a claim waits for another one no lock is held (6), for the other's unprepare must get by
  (5).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from dragoon.api.claims import ClaimRef
from dragoon.api.forms import DEFAULT, Form
from dragoon.errors import (
    ApiNotFoundError,
    ApiUnavailableError,
    ClaimGoneError,
    ClaimInUseError,
    DeviceBusyError,
    DragoonError,
)
from dragoon.gpu.aside import Patient
from dragoon.gpu.model import Inventory
from dragoon.kube.port import CLAIMS, Api
from dragoon.prepare import consumers
from dragoon.prepare.cdi import Edits
from dragoon.prepare.clock import Clock, LoopClock, Stopwatch
from dragoon.prepare.dividing import divisible
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.executing import Executor, Held
from dragoon.prepare.given import Given, given
from dragoon.prepare.guard import Holder
from dragoon.prepare.host_root import HostRoot
from dragoon.prepare.joining import Calls
from dragoon.prepare.journal import Entry
from dragoon.prepare.locks import Turns
from dragoon.prepare.observing import Finished, Ignored, Observer, Repaired, Swept, Waiting, ignore
from dragoon.prepare.paths import check_uid
from dragoon.prepare.plan import needs_pod, plan
from dragoon.prepare.pods import PodLook, look
from dragoon.prepare.port import PreparedDevice
from dragoon.prepare.rebuilding import Rebuilder
from dragoon.prepare.reconciling import Reconciler
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.sweeping import HardwareSweep
from dragoon.prepare.threads import Threads, run_somewhere
from dragoon.prepare.tidying import Tidier
from dragoon.prepare.waiting import Backoff, Budget, Changes

_T = TypeVar("_T")
_Answer = tuple[PreparedDevice, ...]


class Engine:
    """The `prepare.port.Preparer` of a node. Several processes may run one on the same folders.

    inventory answers what is on this node now, and has its own patience with a driver that hangs;
    common gives what every container with a real GPU needs, and blocks; enforcement are the tiers
    that keep shares of a GPU to their limits. forms answers in which forms this node publishes its
    GPUs: with mig among them, cards are divided. threads carry out effects; asyncio's own do
    without.
    """

    def __init__(
        self,
        api: Api,
        inventory: Callable[[], Awaitable[Inventory]],
        effects: Effects,
        settings: PrepareSettings,
        *,
        common: Callable[[Inventory], Edits] = lambda _: Edits(),
        enforcement: Enforcement | None = None,
        forms: Callable[[], Collection[Form]] = lambda: DEFAULT,
        clock: Clock | None = None,
        observer: Observer = ignore,
        threads: Threads | None = None,
    ) -> None:
        self._api = api
        self._in_thread = threads.run if threads else run_somewhere
        self._inventory = inventory
        self._settings = settings
        self._common = common
        self._enforcement = enforcement or Enforcement()
        self._forms = forms
        self._clock = clock or LoopClock()
        self._observer = observer
        self._effects = effects
        self._executor = Executor(effects, settings, observer)
        self._calls: Calls[_Answer] = Calls()
        self._turns = Turns()
        self._changes = Changes(self._clock)
        # Of these it is known, without a look into the journal, that containers may live with them.
        self._answered: set[str] = set()
        self._tidier = Tidier(
            self._executor, settings.paths.folders, observer, patience=settings.cards_s
        )
        self._reconciler = Reconciler(
            api, self._executor, settings, observer=observer, release=self._release
        )
        self._sweep = HardwareSweep(self._executor, common, HostRoot(settings.host_root), observer)
        self._cards = Patient(settings.cards_s)
        self._rebuilding: asyncio.Task[None] | None = None
        self._rebuilder = Rebuilder(
            api,
            settings,
            self._clock,
            observer=observer,
            rebuild=self._rebuild,
            forget=lambda uid: asyncio.to_thread(self._executor.forget, uid),
        )

    def __repr__(self) -> str:
        return f"<Engine {self._settings.driver} on {self._settings.node} calls={len(self._calls)}>"

    async def start(self) -> None:
        """Makes the folders and tidies what an earlier process left. Call it before any other.

        Needs no API server. Raises StateError when the folders cannot be made.
        """
        await asyncio.to_thread(self._executor.open)
        await asyncio.to_thread(self._tidier.look)

    async def run(self) -> None:
        """Tidies each second, reconciles now and then each minute, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tidy_for_ever())
            group.create_task(self._reconcile_for_ever())

    async def finished(self) -> None:
        """Returns when no effects are under way, those of calls that were cut off included."""
        await self._turns.idle()

    async def reconcile(self) -> None:
        """Does now what `run` does each minute: nothing damaged, left or outdated stays."""
        self._tidier.forget()
        await self._tidy()
        await self._reconcile()

    def prepared_entry(self, uid: str) -> Entry | None:
        """What the journal says of a claim that is prepared in this boot; None else. Blocks."""
        return self._executor.prepared_entry(uid)

    async def prepare(self, claim: ClaimRef) -> _Answer:
        """See `Preparer.prepare`."""
        check_uid(claim.uid)
        budget = Budget(self._clock, self._settings.wait_s)
        return await self._calls.join(
            claim,
            budget,
            lambda: self._told("prepare", claim, lambda watch: self._prepare(claim, budget, watch)),
        )

    async def unprepare(self, claim: ClaimRef) -> None:
        """See `Preparer.unprepare`. Raises ClaimInUseError while a pod here still runs with it."""
        check_uid(claim.uid)
        await self._told("unprepare", claim, lambda watch: self._unprepare(claim, watch))

    async def _prepare(self, claim: ClaimRef, budget: Budget, watch: Stopwatch) -> _Answer:
        backoff = Backoff()
        reason = ""
        while True:
            seen = self._changes.count
            holder = None
            try:
                outcome = await self._try(claim, watch)
            except DragoonError as error:
                refusal = error
            else:
                if outcome is None:
                    return ()
                if isinstance(outcome, Entry):
                    self._answered.add(claim.uid)
                    return outcome.answer()
                holder, refusal = outcome.by, _busy(claim, outcome.by)
            if not refusal.retryable or not budget.left:
                raise refusal
            if reason != str(refusal):
                reason = str(refusal)
                self._observer(Waiting(claim, refusal))
            if holder is None:
                await self._clock.sleep(min(backoff.next(), budget.left))
            else:
                await self._released(holder, seen, budget)

    async def _try(self, claim: ClaimRef, watch: Stopwatch) -> Entry | Held | None:
        got, pod = await self._ask(claim, watch)
        if not got.devices:
            return None
        inventory = await self._inventory()
        with watch.span("effects"):
            return await self._finished(claim, lambda: self._carry_out(got, pod, inventory))

    async def _rebuild(self, claim: ClaimRef) -> bool:
        """Writes the entry of a claim anew that was answered, and whose own was damaged."""
        got, pod = await self._ask(claim, Stopwatch(self._clock))
        inventory = await self._inventory()
        return await self._finished(
            claim, lambda: self._executor.rebuild(self._planned(got, pod, inventory))
        )

    async def _ask(self, claim: ClaimRef, watch: Stopwatch) -> tuple[Given, PodLook | None]:
        """What a claim was given, and its pod where that has to be known."""
        with watch.span("api"):
            raw = await self._read(claim)
        got = given(raw, claim, self._settings)
        if not needs_pod(got, self._enforcement):
            return got, None
        with watch.span("api"):
            return got, await look(self._api, got, self._settings)

    def _carry_out(self, got: Given, pod: PodLook | None, inventory: Inventory) -> Entry | Held:
        wanted = self._planned(got, pod, inventory)
        for text in got.ignored:
            self._observer(Ignored(got.ref, text))
        return self._executor.prepare(wanted, may_divide=Form.MIG in self._forms())

    def _planned(self, got: Given, pod: PodLook | None, inventory: Inventory) -> Entry:
        may_divide = Form.MIG in self._forms()
        mig = self._effects.mig
        return plan(
            got,
            inventory,
            self._settings,
            boot_id=self._effects.boot_id(),
            common=Edits() if inventory.simulated else self._common(inventory),
            enforcement=self._enforcement,
            pod=pod,
            divisible=divisible(got, inventory, self._settings, mig, allowed=may_divide),
        )

    async def _read(self, claim: ClaimRef) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._settings.api_patience_s):
                return await self._api.get(CLAIMS, claim.name, namespace=claim.namespace)
        except ApiNotFoundError as error:
            raise ClaimGoneError(f"claim {claim} does not exist any more") from error
        except TimeoutError as error:
            raise ApiUnavailableError(f"claim {claim}: the API server does not answer") from error

    async def _released(self, holder: Holder, seen: int, budget: Budget) -> None:
        """Waits until the holder may have let go, or until the claim should be read again.

        Another plugin process may be the one that unprepares the holder: so the journal is looked
        at too.
        """
        again = self._clock.now() + self._settings.reread_s
        while budget.left and self._clock.now() < again:
            pause = min(self._settings.poll_s, budget.left)
            if await self._changes.beyond(seen, pause):
                return
            if not await asyncio.to_thread(self._executor.knows, holder.claim.uid):
                return

    async def _unprepare(self, claim: ClaimRef, watch: Stopwatch) -> None:
        uid = claim.uid
        if uid in self._answered or await asyncio.to_thread(self._executor.in_use, uid):
            with watch.span("api"):
                await self._check_unused(claim)
        with watch.span("effects"):
            await self._finished(claim, lambda: self._executor.unprepare(uid))
        self._answered.discard(uid)
        self._changes.announce()

    async def _tidy_for_ever(self) -> None:
        while True:
            await self._clock.sleep(self._settings.watch_s)
            await self._tidy()

    async def _tidy(self) -> None:
        await asyncio.to_thread(self._tidier.look)
        if self._rebuilding is None:
            missing = self._tidier.unreadable
            self._rebuilding = asyncio.create_task(self._rebuilder.consider(missing))
            await asyncio.wait({self._rebuilding}, timeout=self._settings.cards_s)
        if self._rebuilding.done():  # else a card hangs: nobody waits for it again
            ended, self._rebuilding = self._rebuilding, None
            ended.result()

    async def _reconcile_for_ever(self) -> None:
        while True:
            await self._reconcile()
            await self._clock.sleep(self._settings.sweep_s)
            self._tidier.forget()

    async def _reconcile(self) -> None:
        watch = Stopwatch(self._clock)
        await self._reconciler.reconcile()
        with contextlib.suppress(DragoonError):  # whoever looks at the hardware tells about it
            inventory = await self._inventory()
            await self._cards.ask(lambda: self._sweep.look(inventory))
        self._observer(Swept(watch.seconds))

    async def _release(self, entry: Entry) -> None:
        await self._finished(entry.claim, lambda: self._executor.unprepare(entry.uid, entry))
        self._changes.announce()
        self._observer(Repaired(entry.uid, f"claim {entry.claim} had gone: released"))

    async def _check_unused(self, claim: ClaimRef) -> None:
        budget = Budget(self._clock, self._settings.ending_s)
        backoff = Backoff()
        while True:
            users = await consumers.ask(
                self._api, claim, self._settings.node, self._settings.api_patience_s
            )
            if not users:
                return
            if not budget.left:
                raise ClaimInUseError(
                    f"claim {claim} is still in use on this node by {', '.join(users)}"
                )
            await self._clock.sleep(min(backoff.next(), budget.left))

    async def _finished(self, claim: ClaimRef, effects: Callable[[], _T]) -> _T:
        """Runs effects to their end in a thread, in this claim's turn, whoever is cancelled."""
        end_turn = await self._turns.take(claim.uid)
        try:
            work = self._in_thread(effects, end_turn)
        except BaseException:
            end_turn()
            raise
        return await work

    async def _told(
        self, operation: str, claim: ClaimRef, work: Callable[[Stopwatch], Awaitable[_T]]
    ) -> _T:
        watch = Stopwatch(self._clock)
        try:
            result = await work(watch)
        except DragoonError as error:
            self._observer(Finished(operation, claim, watch.seconds, error, watch.spans))
            raise
        self._observer(Finished(operation, claim, watch.seconds, None, watch.spans))
        return result


def _busy(claim: ClaimRef, holder: Holder) -> DeviceBusyError:
    if holder.claim.uid == claim.uid:
        return DeviceBusyError(
            f"claim {claim} was allocated other devices, and is still prepared with the old ones",
            hint="the pod that used them was force-deleted and its containers have not ended yet",
        )
    return DeviceBusyError(
        f"claim {claim}: claim {holder.claim} is still prepared here and holds "
        f"{', '.join(map(str, holder.footprints))}",
        hint="its containers have not ended yet; the kubelet asks again in a minute or two",
    )
