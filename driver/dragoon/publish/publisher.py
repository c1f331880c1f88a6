"""Keeps the slices of this node in the API server as they were offered.

Decides on a consistent list, never on a copy that may lag: so no slice is created twice. The
watch only says when to look. Every write's answer is compared with what was sent.
"""

import asyncio
import contextlib
import math
from dataclasses import dataclass, replace

import structlog

from dragoon.errors import ApiInvalidError, ApiNotFoundError, DragoonError
from dragoon.kube.backoff import Backoff
from dragoon.kube.budget import Budget
from dragoon.kube.informer import Informer
from dragoon.kube.mirror import Change
from dragoon.kube.port import SLICES, Api, Object
from dragoon.publish import comparing, slices
from dragoon.publish.comparing import Difference
from dragoon.publish.keepable import Keepable, keepable
from dragoon.publish.offer import Offer
from dragoon.publish.own_node import OwnNode
from dragoon.publish.pacing import Due, Pace
from dragoon.publish.probing import Support, concerned
from dragoon.publish.reconciling import (
    Adoption,
    Delete,
    Memory,
    Plan,
    Target,
    Write,
    decide,
    remembered,
)
from dragoon.publish.slices import Pool
from dragoon.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PublishState:
    """What stands in the API server, as far as we know.

    generation: of the pool when it was last as it should be; None before the first time.
    current: the last attempt succeeded and nothing is waiting to be written.
    devices: how many are published. left_out: those that are not, because the server would drop
    the taint that protects them. whole_only: the server would drop what keeps other forms apart.
    differences: what servers stored otherwise than it was sent.
    error: why the last attempt failed.
    """

    generation: int | None = None
    current: bool = False
    devices: int = 0
    left_out: tuple[str, ...] = ()
    whole_only: bool = False
    differences: tuple[Difference, ...] = ()
    error: DragoonError | None = None


class Publisher:
    """The slices of one driver on one node. All methods belong to the loop that runs run()."""

    def __init__(
        self, api: Api, node: OwnNode, *, driver: str, metrics: Metrics, pace: Pace | None = None
    ) -> None:
        self._api = api
        self._node = node
        self._pool = Pool(driver, node.name)
        self._fields = {"spec.driver": driver, "spec.nodeName": node.name}
        self._metrics = metrics
        self._pace = pace = pace or Pace()
        self._retry = Backoff(first=pace.first_retry, limit=pace.last_retry)
        self._refused = Backoff(first=pace.first_refused, limit=pace.last_refused)
        self._support = Support(api, pace.probe)
        self._informer: Informer[Object] = Informer(
            api,
            SLICES,
            fields=self._fields,
            backoff=Backoff(first=pace.first_retry, limit=pace.last_retry),
        )
        self._informer.subscribe(self._noticed)
        node.follow(self._node_changed)
        self._due = Due()
        self._budget = Budget(pace.burst, pace.rest)
        self._allowed = False
        self._offered: Offer | None = None
        self._memory = Memory()
        self._standing: Target | None = None
        self._observing = False
        self._repaired_at = -math.inf
        self._kept = Keepable(())
        self._state = PublishState()
        self._current = asyncio.Event()

    @property
    def state(self) -> PublishState:
        state = replace(self._state, current=self._current.is_set())
        unseen = not self._informer.state.synced
        return replace(state, error=self._informer.state.last_error) if unseen else state

    def offer(self, offer: Offer) -> None:
        """What should be published from now on; the last offer wins.

        A device that no API server would take is left out, and logged.
        """
        usable, findings = offer.usable()
        if usable == self._offered:
            return
        for finding in findings:
            log.error("a device cannot be published", finding=str(finding))
        self._offered = usable
        self._refused.reset()
        self._current.clear()
        self._due.open(self._allowed)
        self._due.request()

    def allow(self, now: bool) -> None:  # noqa: FBT001 - reads as allow(True)
        """Publishing and repairing happen only while allowed: while the kubelet has registered us.

        Slices published earlier would lure pods to a node whose kubelet cannot prepare them yet.
        """
        if now is not self._allowed:
            self._allowed = now
            self._due.open(now and self._offered is not None)
            self._due.request()

    async def published(self) -> None:
        """Waits until what was offered last stands in the API server."""
        await self._current.wait()

    async def run(self) -> None:
        """Publishes and repairs until cancelled. Errors of the API are waited out."""
        self._due.request()  # What was due when an earlier run died would never be done.
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._informer.run())
            await self._informer.synced()
            while True:
                await self._turn()
                try:
                    await self._reconcile()
                except DragoonError as error:
                    self._failed(error)

    async def _turn(self) -> None:
        """Returns when something is due, and a write would be within the budget."""
        await self._due.wait()
        while pause := self._budget.wait(asyncio.get_running_loop().time()):
            self._due.request(pause)
            await self._due.wait()

    def _noticed(self, change: Change[Object]) -> None:
        """Somebody wrote or deleted a slice of ours; our own writes are told by the flag."""
        if self._observing:
            return
        since_repair = asyncio.get_running_loop().time() - self._repaired_at
        wiped = change.new is None and since_repair >= self._pace.edit
        self._due.request(self._pace.wipe if wiped else self._pace.edit)

    def _node_changed(self, node: Object) -> None:
        """Made anew under the same name, it must own the slices before they go with the old one."""
        if self._standing is not None and self._standing.pool.node_uid != node["metadata"]["uid"]:
            self._due.request()

    async def _reconcile(self) -> None:
        offered = self._offered
        if offered is None:
            return
        node = await self._node.read()
        pool = replace(self._pool, node_uid=str(node["metadata"]["uid"]))
        listing = await self._api.list(SLICES, fields=self._fields)
        kept = await keepable(self._support, pool, offered)
        target = Target(pool, slices.parts(kept.devices, kept.counter_sets))
        self._memory = remembered(target, listing.items, self._memory)
        plan = decide(target, listing.items, self._memory)
        if await self._carry_out(plan):
            self._succeeded(target, plan, kept)
            if self._offered is offered:
                self._current.set()

    async def _carry_out(self, plan: Plan) -> bool:
        """Whether all writes were made and stand; what differs in another way is adopted."""
        if not plan.actions:
            return True
        self._memory = replace(self._memory, generation=plan.generation)
        self._budget.take(asyncio.get_running_loop().time())
        for action in plan.actions:
            if not self._allowed:
                self._due.request()
                return False
            if isinstance(action, Delete):
                await self._delete(action)
            elif not self._accept(action, await self._write(action)):
                return False
        return True

    async def _delete(self, action: Delete) -> None:
        # Somebody else's deletion is as good as ours.
        with contextlib.suppress(ApiNotFoundError):
            await self._api.delete(
                SLICES, action.name, uid=action.uid, resource_version=action.resource_version
            )
            self._metrics.slice_written("delete")

    async def _write(self, action: Write) -> Object:
        if action.creates:
            stored = await self._api.create(SLICES, action.body)
        else:
            stored = await self._api.replace(SLICES, action.body)
        self._metrics.slice_written("create" if action.creates else "update")
        times = {**self._memory.times, **dict(comparing.taint_times((stored,)))}
        self._memory = replace(self._memory, times=times)
        self._observing = True
        try:
            self._informer.observe(stored)
        finally:
            self._observing = False
        return stored

    def _accept(self, action: Write, stored: Object) -> bool:
        """Compares what was sent with what came back; False where it must not stay like that."""
        sent, found = comparing.content(action.body), comparing.content(stored)
        differing = comparing.differences(sent, found)
        adopted = {k: v for k, v in self._memory.adopted.items() if k != action.index}
        if not differing:
            self._memory = replace(self._memory, adopted=adopted)
            return True
        for difference in differing:
            log.warning("the slice is not stored as it was sent", difference=str(difference))
        lost = {feature for feature in map(concerned, differing) if feature is not None}
        if lost:
            for feature in lost:
                self._support.learn(feature, kept=False)
            self._due.request()
            return False
        adopted[action.index] = Adoption(sent, found)
        self._memory = replace(self._memory, adopted=adopted)
        return True

    def _succeeded(self, target: Target, plan: Plan, kept: Keepable) -> None:
        self._retry.reset()
        self._refused.reset()
        count = len(kept.devices)
        if plan.actions:
            if target == self._standing:
                self._repaired_at = asyncio.get_running_loop().time()
                self._metrics.slices_repaired()
            log.info(
                "slices published",
                generation=plan.generation,
                slices=len(target.parts),
                devices=count,
                repaired=target == self._standing,
            )
        self._standing = target
        self._metrics.slices_published(len(target.parts))
        if kept.left_out or kept.whole_only:
            # Servers are upgraded: ask again some time.
            self._due.request(self._pace.probe)
            kept.tell(self._kept)
        self._kept = kept
        self._state = PublishState(
            generation=plan.generation,
            devices=count,
            left_out=kept.left_out,
            whole_only=kept.whole_only,
            differences=tuple(
                difference
                for index, adoption in self._memory.adopted.items()
                if index < len(target.parts)
                for difference in comparing.differences(adoption.sent, adoption.stored)
            ),
        )

    def _failed(self, error: DragoonError) -> None:
        invalid = isinstance(error, ApiInvalidError)
        delay = (self._refused if invalid else self._retry).next()
        self._due.request(delay)
        self._current.clear()
        self._state = replace(self._state, error=error)
        self._metrics.api_failed(error.code)
        log.warning("slices not published", code=error.code, error=str(error), next_try_s=delay)
