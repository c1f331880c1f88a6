"""The controller's work: which gangs there are, and a look at each that changed.

One family (a label value in a namespace) is looked at by one task at a time, several of them at one
time. What a look raises is logged and the family comes again, ever more slowly.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

import structlog

from dragoon.api.gang import GangObject, wire
from dragoon.errors import ApiConflictError, ApiNotFoundError, DragoonError
from dragoon.gang.discovering import checking, families
from dragoon.gang.discovering.answers import Ground
from dragoon.gang.discovering.checking import Fault
from dragoon.gang.discovering.eligible import eligible
from dragoon.gang.discovering.families import Family, NewGang
from dragoon.gang.discovering.sizes import size_of
from dragoon.gang.looking import Looker
from dragoon.gang.pod_index import FamilyKey
from dragoon.gang.queueing import Queue
from dragoon.gang.records import PodRecord
from dragoon.gang.remembering import Case
from dragoon.gang.stranded import is_stranded
from dragoon.gang.waiting.freed import Freed
from dragoon.gang.waiting.ranking import Rank, rank
from dragoon.gang.world import World
from dragoon.kube.backoff import Backoff
from dragoon.kube.port import GANGS, Api

_log = structlog.get_logger(__name__)

_REST: Final = 5.0
_LONGEST_REST_S: Final = 0.5
"""A family rests for this many times what its last look took: a burst of events is one look.

Not for long: most of what a look takes is waiting for the API server.
"""
_HINTS: Final = 3


class Teller(Protocol):
    """Who is told of pods that a person has to look at."""

    def fault(self, fault: Fault) -> None:
        """Something is wrong with pods; said once for each pod and text."""
        ...


class GangController:
    """Looks at families until cancelled. looker: for one gang."""

    def __init__(
        self,
        api: Api,
        world: World,
        looker: Looker,
        queue: Queue[FamilyKey],
        *,
        teller: Teller,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._world = world
        self._looker = looker
        self._queue = queue
        self._teller = teller
        self._clock = clock
        self._rested: dict[FamilyKey, float] = {}
        self._backoffs: dict[FamilyKey, Backoff] = {}

    async def run(self) -> None:
        """Looks at all families, then at those that change.

        Needs copies that show the last writes of any leader before this one (case C37).
        """
        self._looker.forget_all()
        self._rested.clear()
        self._backoffs.clear()
        for key in self._world.families():
            self._queue.add(key)
        async with asyncio.TaskGroup() as group:
            while True:
                await self._looker.workers.free()
                key = await self._queue.take()
                self._looker.workers.begin()
                looking = group.create_task(self._work(key), name=f"gangs {'/'.join(key)}")
                # Of a task that is cancelled before it starts nothing runs but this.
                looking.add_done_callback(partial(self._worked, key))

    def _worked(self, key: FamilyKey, _looking: asyncio.Task[None]) -> None:
        self._looker.workers.end()
        self._queue.done(key)

    def changed(self, key: FamilyKey) -> None:
        """Something of a family changed."""
        due = self._rested.get(key, 0.0)
        if due > self._clock():
            self._queue.add_at(key, due)
        else:
            self._queue.add(key)

    def room(self, freed: Freed) -> None:
        """Devices or nodes may have become free: gangs that wait for them are looked at again.

        In the order of the queue: the first one takes its turn at the planner first.
        """
        woken = self._looker.line.room(freed)
        if not woken:
            return
        gangs = (gang for gang in self._world.copies.gangs.values() if gang.uid in woken)
        for gang in sorted(gangs, key=self._rank):
            self.changed(FamilyKey(gang.namespace, gang.group))

    def _rank(self, gang: GangObject) -> Rank:
        return rank(gang, self._world.family(FamilyKey(gang.namespace, gang.group)))

    async def _work(self, key: FamilyKey) -> None:
        started = self._clock()
        try:
            await self.look(key)
            self._backoffs.pop(key, None)
        except DragoonError as error:
            self._later(key)
            _log.warning("look failed", family="/".join(key), code=error.code, error=str(error))
        except Exception:  # noqa: BLE001 - one family must not cost the others
            self._later(key)
            _log.exception("look failed unexpectedly", family="/".join(key))
        finally:
            self._rest(key, started)

    def _rest(self, key: FamilyKey, started: float) -> None:
        if self._world.family(key) or self._world.gangs_of(key):
            rest = min(_LONGEST_REST_S, _REST * (self._clock() - started))
            self._rested[key] = self._clock() + rest
        else:
            self._rested.pop(key, None)
            self._backoffs.pop(key, None)
            self._queue.forget(key)

    def _later(self, key: FamilyKey) -> None:
        backoff = self._backoffs.setdefault(key, Backoff(first=0.5, limit=30.0))
        self._queue.add_at(key, self._clock() + backoff.next())

    async def look(self, key: FamilyKey) -> None:
        """Looks at all gangs of a family. Raises DragoonError."""
        world = self._world
        ground = world.ground  # One for the look: it remembers what pods say.
        known = world.gangs_of(key)
        gangs = [one for one in known if not one.deleting]
        by_uid = {one.uid: one for one in known}
        # A pod that another gang has placed stays with it, whatever it says now.
        pods = [
            pod
            for pod in world.family(key)
            if not (placed := world.planned_by(pod.uid))
            or (placed in by_uid and not self._has_moved(by_uid[placed], pod))
        ]
        found = families.sort(
            *key,
            pods=pods,
            gangs=gangs,
            jobs=ground.jobs,
            taken=frozenset(
                one.name for one in world.copies.gangs.values() if one.namespace == key.namespace
            ),
        )
        if found.unnamed:
            self._teller.fault(checking.bad_name(found.unnamed))
        for pod, wrong in found.unsorted:
            self._teller.fault(checking.bad_group(pod, wrong))
        for new in found.missing:
            await self._create(new, ground)
        # Not those made just now: their pods were sorted without them.
        for gang in known:
            await self._look(gang, found, ground)

    async def _create(self, new: NewGang, ground: Ground) -> None:
        size = checking.wanted_size(new.pods, ground)
        if size is None:
            # A Gang must have a size; what is wrong with it stands in its status.
            said = (size_of(pod, ground).number for pod in new.pods)
            size = max((number for number in said if number), default=1)
        try:
            stored = await self._api.create(GANGS, families.body(new, size, ground.jobs))
        except ApiConflictError:
            return  # The watch will show who has the name now.
        _log.info("gang made", gang=f"{new.namespace}/{new.name}", size=size)
        self._world.copies.observe(GANGS, stored)

    async def _look(self, gang: GangObject, family: Family, ground: Ground) -> None:
        pods = family.members.get(gang.name, ())
        relabelled = self._relabelled(gang, pods)
        mine = [pod for pod in pods if self._world.planned_by(pod.uid) in {"", gang.uid}]
        mine += relabelled
        if gang.made_by_us and not gang.deleting and await self._keep(gang, mine, ground):
            return
        found = checking.faults(
            gang,
            mine,
            ground=ground,
            priority_classes=set(self._world.copies.priority_classes.values()),
            relabelled=relabelled,
            elsewhere=self._elsewhere(gang, pods, ground),
        )
        ungated = checking.ungated(mine, self._ours(gang, mine))
        for fault in (*found, *((ungated,) if ungated is not None else ())):
            if not fault.waits:
                self._teller.fault(fault)
        mine = eligible(mine, ground, planned=_planned(gang))
        case = Case(gang, mine, found, ungated, self._hints(gang, mine))
        await self._looker.look(case)

    def _relabelled(self, gang: GangObject, pods: Sequence[PodRecord]) -> list[PodRecord]:
        """Living pods that the plan names and that say now that they are of another gang."""
        plan = gang.status.plan
        if plan is None:
            return []
        there = {pod.uid for pod in pods}
        named = {one.uid: one.pod for one in plan.members} | {one.uid: one.pod for one in plan.held}
        found = (
            self._world.copies.pods.get(name, gang.namespace)
            for uid, name in named.items()
            if uid not in there
        )
        return [
            pod
            for pod in found
            if pod is not None
            and pod.uid in named
            and pod.is_alive
            and (pod.group != gang.group or self._has_moved(gang, pod))
        ]

    def _has_moved(self, gang: GangObject, pod: PodRecord) -> bool:
        """Whether a pod is in another group of the other project now, or in none."""
        if gang.deleting or gang.spec.source is None:
            return False
        return not families.belongs(pod, gang, self._world.jobs_by_uid)

    def _elsewhere(
        self, gang: GangObject, pods: Sequence[PodRecord], ground: Ground
    ) -> list[PodRecord]:
        """Living pods of the same group of another project that are not of this Gang."""
        if not gang.made_by_us or gang.spec.source is None:
            return []
        return [
            pod
            for pod in self._world.in_groups_of(one for one in pods if one.is_alive)
            if pod.is_alive and not families.belongs(pod, gang, ground.jobs)
        ]

    def _ours(self, gang: GangObject, pods: Sequence[PodRecord]) -> set[str]:
        """UIDs of pods that need no gate: planned ones, pinned by us, or stranded."""
        claims = self._world.claim
        return _planned(gang) | {pod.uid for pod in pods if pod.pinned or is_stranded(pod, claims)}

    async def _keep(self, gang: GangObject, pods: Sequence[PodRecord], ground: Ground) -> bool:
        """Keeps a Gang that we made in step with its pods; whether it is gone now."""
        if not pods and gang.spec.owner is None and gang.status.plan is None:
            try:
                await self._api.delete(
                    GANGS,
                    gang.name,
                    namespace=gang.namespace,
                    uid=gang.uid,
                    resource_version=gang.version,
                )
            except ApiNotFoundError:
                return True
            return True
        patch: dict[str, Any] = {}
        size = checking.wanted_size(pods, ground)
        if size is not None and size != gang.spec.size and gang.status.plan is None:
            patch["spec"] = {"size": size}
        living = [pod for pod in pods if not pod.ended]
        references = families.owner_references(gang, living, ground.jobs)
        if living and references not in (None, [wire(one) for one in gang.owners]):
            patch["metadata"] = {"ownerReferences": references}
        if patch:
            patch.setdefault("metadata", {}).update(uid=gang.uid, resourceVersion=gang.version)
            stored = await self._api.patch(GANGS, gang.name, patch, namespace=gang.namespace)
            self._world.copies.observe(GANGS, stored)
        return False

    def _hints(self, gang: GangObject, pods: Sequence[PodRecord]) -> tuple[str, ...]:
        """What is known of the pods that are missing, or else of claims that are."""
        living = [pod for pod in pods if pod.is_alive]
        if len(living) >= gang.spec.size:
            hints: list[str] = []
            for pod in living:
                if len(hints) < _HINTS:
                    hints += self._claim_hints(pod)
            return tuple(hints[:_HINTS])
        elsewhere = {
            namespace: count
            for namespace, count in self._world.namespaces_with(gang.group).items()
            if namespace != gang.namespace
        }
        if not elsewhere:
            return ()
        told = ", ".join(f"{count} in {name}" for name, count in sorted(elsewhere.items())[:_HINTS])
        return (f"pods with this label are also in other namespaces ({told}): a gang is of one",)

    def _claim_hints(self, pod: PodRecord) -> list[str]:
        spec = (pod.raw or {}).get("spec") or {}
        status = (pod.raw or {}).get("status") or {}
        made = {
            one.get("name"): one.get("resourceClaimName") or ""
            for one in status.get("resourceClaimStatuses") or ()
        }
        found: list[str] = []
        for entry in spec.get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or made.get(entry["name"])
            if name and self._world.claim(pod.namespace, name) is None:
                found.append(f"claim {name} of pod {pod.name} is not there")
            elif name is None:
                template = entry.get("resourceClaimTemplateName")
                found.append(f"pod {pod.name} has no claim from template {template} yet")
        return found


def _planned(gang: GangObject) -> set[str]:
    """The UIDs of the pods that the plan names."""
    plan = gang.status.plan
    if plan is None:
        return set()
    return {one.uid for one in plan.members} | {one.uid for one in plan.held}
