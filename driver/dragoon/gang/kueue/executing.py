"""Carries out what was decided: one write each, on the version that it was decided on."""

from typing import Any, Final

from dragoon.gang.kueue.actions import Say, SetConditions, Wake
from dragoon.gang.kueue.apis import Apis
from dragoon.gang.protocol.model import Ref
from dragoon.kube.port import Api, Object, Resource

_NO_WAIT: Final[dict[str, Any]] = {"requeueState": {"requeueAt": None}}


class Executor:
    """Writes statuses of Kueue's objects. Answers what the server stored; raises ApiError."""

    def __init__(self, api: Api, apis: Apis) -> None:
        self._api = api
        self._apis = apis

    async def say(self, action: Say) -> Object:
        """The states of a Workload's checks. The list is replaced whole: the version guards it."""
        status: dict[str, Any] = {"admissionChecks": [dict(one) for one in action.checks]}
        if action.at_once:
            status |= _NO_WAIT
        return await self._patch(self._apis.workloads, action.workload, status)

    async def wake(self, action: Wake) -> Object:
        """A Workload without the time before which Kueue does not try it."""
        return await self._patch(self._apis.workloads, action.workload, _NO_WAIT)

    async def set_conditions(self, action: SetConditions) -> Object:
        """The conditions of an AdmissionCheck."""
        status = {"conditions": [dict(one) for one in action.conditions]}
        return await self._patch(self._apis.checks, action.check, status)

    async def _patch(self, resource: Resource, ref: Ref, status: dict[str, Any]) -> Object:
        meta = {"uid": ref.uid, "resourceVersion": ref.version}
        return await self._api.patch(
            resource,
            ref.name,
            {"metadata": meta, "status": status},
            namespace=ref.namespace or None,
            subresource="status",
        )
