"""The pods of this node as the audit sees them: names, and the claims of each container."""

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.errors import ApiError, ClaimNotAllocatedError
from dragoon.kube.port import PODS, Api
from dragoon.prepare.audit.whereabouts import PodPlace
from dragoon.prepare.clock import Clock
from dragoon.prepare.journal import Entry, HeldDevice
from dragoon.prepare.pods import named_claims

_MIRROR: Final = "kubernetes.io/config.mirror"
_PAUSE_S: Final = 10.0
_KINDS: Final = (
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)

Named = frozenset[tuple[str, str | None]]
"""Claims by name, each with the one request of it that is named, None for all of it."""


@dataclass(frozen=True, slots=True)
class PodRef:
    """Which pod, as the API server knows it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class AuditedPod:
    """A pod. containers: names by the runtime's id; claims: what each container names, by name."""

    ref: PodRef
    containers: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Named] = field(default_factory=dict)

    def has(self, container_id: str, entry: Entry, held: HeldDevice) -> bool:
        """Whether a container names a device of a claim.

        One that the kubelet has not reported yet may be any container of the pod.
        """
        if entry.namespace != self.ref.namespace:
            return False
        name = self.containers.get(container_id)
        every: Named = frozenset().union(*self.claims.values())
        named = self.claims.get(name, frozenset()) if name else every
        request = held.request.partition("/")[0]
        return any((entry.name, one) in named for one in (None, request))

    @property
    def has_claims(self) -> bool:
        """Whether any of its containers names a claim."""
        return any(self.claims.values())


class Pods:
    """What the API server says of pods by the UID in their cgroups.

    It is asked only when one is not known, and then not more often than every few seconds.
    problem: why it could not be asked the last time; empty when it could.
    """

    def __init__(self, api: Api, node: str, clock: Clock, *, patience: float = 5.0) -> None:
        self._api = api
        self._node = node
        self._clock = clock
        self._patience = patience
        self._known: dict[str, AuditedPod] = {}
        self._next = -math.inf
        self.problem = ""

    async def of(self, places: frozenset[PodPlace]) -> Mapping[str, AuditedPod]:
        """The pods of these places by UID, without those that the API server does not show."""
        if any(map(self._unknown, places)) and self._clock.now() >= self._next:
            self._next = self._clock.now() + _PAUSE_S
            try:
                self._known = await self._list()
            except (ApiError, TimeoutError) as error:
                self.problem = f"the pods of this node cannot be listed: {error or 'no answer'}"
            else:
                self.problem = ""
        return self._known

    def _unknown(self, place: PodPlace) -> bool:
        pod = self._known.get(place.pod_uid)
        return pod is None or (place.container_id not in {"", *pod.containers})

    async def _list(self) -> dict[str, AuditedPod]:
        async with asyncio.timeout(self._patience):
            listed = await self._api.list(PODS, fields={"spec.nodeName": self._node})
        return {_cgroup_uid(pod): audited(pod) for pod in listed.items}


def audited(pod: Mapping[str, Any]) -> AuditedPod:
    """What the audit needs of a raw pod."""
    meta, status = pod["metadata"], pod.get("status") or {}
    ids: dict[str, str] = {}
    claims: dict[str, Named] = {}
    for field_, statuses in _KINDS:
        for one in pod["spec"].get(field_) or ():
            # Of a pod whose claims are not made yet nothing can run.
            with suppress(ClaimNotAllocatedError):
                claims[one["name"]] = frozenset(named_claims(pod, one))
        for one in status.get(statuses) or ():
            identity = (one.get("containerID") or "").rpartition("://")[2]
            if identity:
                ids[identity] = one["name"]
    ref = PodRef(meta.get("namespace", ""), meta["name"], meta["uid"])
    return AuditedPod(ref, ids, claims)


def _cgroup_uid(pod: Mapping[str, Any]) -> str:
    """The kubelet runs a static pod under another UID than that of its mirror in the API."""
    meta = pod["metadata"]
    return str((meta.get("annotations") or {}).get(_MIRROR) or meta["uid"])
