"""Carries out actions against the API server, many at a time.

Every write says on what it was decided: an object that changed meanwhile is a conflict, and the
loop decides anew. What was done already is no error. The rate is limited below (`kube.throttling`).
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any, Final

from dragoon.api.gang import wire
from dragoon.api.gang_plan import Plan, folded
from dragoon.api.names import FINALIZER
from dragoon.errors import ApiConflictError, ApiNotFoundError, DragoonError
from dragoon.gang.protocol.actions import (
    Action,
    AmendRule,
    ClearAllocation,
    CreateRule,
    DeleteRule,
    Evict,
    Journal,
    Mark,
    Nominate,
    Nudge,
    Reserve,
    Suspend,
    Ungate,
    WriteAllocation,
)
from dragoon.gang.protocol.model import Ref
from dragoon.gang.protocol.objects import claims_annotation, pinned, rule_body
from dragoon.kube.port import (
    CLAIMS,
    GANGS,
    JOBS,
    PODS,
    TAINT_RULES,
    Api,
    Object,
    PatchKind,
    Resource,
)

ANNOTATION_GIVEN_TWICE: Final = "dragoon.dev/given-twice"
"""On a bare pod: its device was given to another pod too, and this one should be deleted."""
ANNOTATION_NUDGED: Final = "dragoon.dev/nudged"
"""On a pod: the event for which its kubelet was woken last."""

Written = tuple[Resource, Object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of actions.

    written: the API server's answers, for the informers' copies. conflicts: writes that were
    decided on something older: look again. errors: all others, in no order.
    """

    written: tuple[Written, ...] = ()
    conflicts: int = 0
    errors: tuple[DragoonError, ...] = ()


class Executor:
    """Writes what was decided. writers: how many requests are under way at once."""

    def __init__(self, api: Api, *, writers: int = 32) -> None:
        self._api = api
        self._slots = asyncio.Semaphore(writers)

    async def execute(self, actions: Iterable[Action]) -> Outcome:
        """Carries out the actions that are writes, in parallel; the others are the loop's.

        Never raises a DragoonError: one write that fails must not stop the others.
        """
        found = await asyncio.gather(*map(self._one, actions))
        errors = [one for one in found if isinstance(one, DragoonError)]
        conflicts = [one for one in errors if isinstance(one, ApiConflictError)]
        return Outcome(
            tuple(one for one in found if isinstance(one, tuple)),
            len(conflicts),
            tuple(one for one in errors if not isinstance(one, ApiConflictError)),
        )

    async def _one(self, action: Action) -> Written | DragoonError | None:
        async with self._slots:
            try:
                return await self._write(action)
            except DragoonError as error:
                return error

    @singledispatchmethod
    async def _write(self, _action: Any) -> Written | None:
        """An action that writes nothing."""
        return None

    @_write.register
    async def _(self, action: Journal) -> Written:
        meta = {"resourceVersion": action.gang.version}
        body = {"metadata": meta, "status": {"plan": _whole(action.plan)}}
        return await self._patch(GANGS, action.gang, body, "status")

    @_write.register
    async def _(self, action: Reserve) -> Written:
        meta = {"resourceVersion": action.gang.version}
        found = None if action.reservation is None else wire(action.reservation)
        body = {"metadata": meta, "status": {"reservation": found}}
        return await self._patch(GANGS, action.gang, body, "status")

    @_write.register
    async def _(self, action: CreateRule) -> Written:
        try:
            return TAINT_RULES, await self._api.create(TAINT_RULES, rule_body(action))
        except ApiConflictError:
            # An earlier try whose answer was lost: the name is derived, so it is the same rule.
            return TAINT_RULES, await self._api.get(TAINT_RULES, action.name)

    @_write.register
    async def _(self, action: AmendRule) -> Written:
        meta = {
            "uid": action.rule.uid,
            "resourceVersion": action.rule.version,
            "annotations": claims_annotation(action.claims),
        }
        return await self._patch(TAINT_RULES, action.rule, {"metadata": meta})

    @_write.register
    async def _(self, action: DeleteRule) -> None:
        try:
            await self._api.delete(TAINT_RULES, action.rule.name, uid=action.rule.uid)
        except ApiNotFoundError:
            return

    @_write.register
    async def _(self, action: WriteAllocation) -> Written:
        version = action.claim.version
        if action.protect:
            # The API server takes finalizers only with the object, allocations only with status.
            meta = {**_exact(action.claim), "finalizers": [FINALIZER]}
            _, found = await self._patch(
                CLAIMS, action.claim, {"metadata": meta}, kind=PatchKind.STRATEGIC
            )
            version = found["metadata"]["resourceVersion"]
        claim = action.claim._replace(version=version)
        body = {"metadata": _exact(claim), "status": {"allocation": dict(action.allocation)}}
        return await self._patch(CLAIMS, claim, body, "status")

    @_write.register
    async def _(self, action: ClearAllocation) -> Written:
        body = {"metadata": _exact(action.claim), "status": {"allocation": None}}
        return await self._patch(CLAIMS, action.claim, body, "status")

    @_write.register
    async def _(self, action: Nominate) -> Written:
        status = {"nominatedNodeName": action.node or None}
        body = {"metadata": {"uid": action.pod.uid}, "status": status}
        return await self._patch(PODS, action.pod, body, "status")

    @_write.register
    async def _(self, action: Ungate) -> Written:
        spec: dict[str, Any] = {"schedulingGates": [{"name": name} for name in action.kept]}
        if action.node:
            spec["affinity"] = pinned(action.affinity, action.node)
        body = {"metadata": _exact(action.pod), "spec": spec}
        return await self._patch(PODS, action.pod, body)

    @_write.register
    async def _(self, action: Suspend) -> Written:
        body = {"metadata": {"uid": action.job.uid}, "spec": {"suspend": action.suspend}}
        return await self._patch(JOBS, action.job, body)

    @_write.register
    async def _(self, action: Evict) -> None:
        try:
            await self._api.evict(
                action.pod.name, namespace=action.pod.namespace, uid=action.pod.uid
            )
        except ApiNotFoundError:
            return

    @_write.register
    async def _(self, action: Mark) -> Written:
        return await self._annotate(action.pod, ANNOTATION_GIVEN_TWICE, action.why)

    @_write.register
    async def _(self, action: Nudge) -> Written:
        return await self._annotate(action.pod, ANNOTATION_NUDGED, action.event)

    async def _annotate(self, pod: Ref, name: str, value: str) -> Written:
        return await self._patch(
            PODS, pod, {"metadata": {"uid": pod.uid, "annotations": {name: value}}}
        )

    async def _patch(
        self,
        resource: Resource,
        ref: Ref,
        body: Mapping[str, Any],
        subresource: str | None = None,
        *,
        kind: PatchKind = PatchKind.MERGE,
    ) -> Written:
        try:
            found = await self._api.patch(
                resource,
                ref.name,
                body,
                kind=kind,
                namespace=ref.namespace or None,
                subresource=subresource,
            )
        except ApiNotFoundError as error:
            # Gone is the last change: whoever decided looks again, as after any other.
            raise ApiConflictError(error.message, status=error.status) from error
        return resource, found


def _exact(ref: Ref) -> dict[str, Any]:
    """Metadata with which a write is refused if the object is not the one that was looked at."""
    return {"uid": ref.uid, "resourceVersion": ref.version}


def _whole(plan: Plan | None) -> Mapping[str, Any] | None:
    """A plan as a merge patch that leaves nothing of the one before."""
    if plan is None:
        return None
    found = wire(folded(plan))
    return {name: found.get(name) for name in Plan.__struct_encode_fields__}
