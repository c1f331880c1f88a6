"""What a cluster does around the controller: claims are made and freed, pods are bound.

Level-triggered, on one in-process API server: each part looks at everything when anything changes.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from dragoon.errors import ApiConflictError, ApiNotFoundError
from dragoon.kube.informer import Informer
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, PODS, TEMPLATES, Object


class ControlPlane:
    """The resource claim controller and a kube-scheduler that only binds what is allocated."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self._changed = asyncio.Event()
        self._pods: Informer[Object] = Informer(api, PODS)
        self._claims: Informer[Object] = Informer(api, CLAIMS)
        for informer in (self._pods, self._claims):
            informer.subscribe(lambda _change: self._changed.set())
        self.makes_claims = True
        self.frees = True
        self.binds = True

    def free_again(self) -> None:
        """Claims are freed from now on, and those that had to be before."""
        self.frees = True
        self._changed.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in (self._pods, self._claims):
                group.create_task(informer.run())
            await self._pods.synced()
            await self._claims.synced()
            while True:
                await self._changed.wait()
                self._changed.clear()
                await asyncio.sleep(0)  # Nothing else here ever lets the informers run.
                for pod in self._pods.values():
                    await self._tend(pod)
                if self.frees:
                    await self._free()

    async def _tend(self, pod: Object) -> None:
        try:
            if self.makes_claims:
                await self._make_claims(pod)
            if self.binds:
                await self._bind(pod)
        except (ApiConflictError, ApiNotFoundError):
            self._changed.set()

    async def _make_claims(self, pod: Object) -> None:
        meta, spec = pod["metadata"], pod["spec"]
        statuses = list(pod["status"].get("resourceClaimStatuses") or ())
        known = {one["name"] for one in statuses}
        for entry in spec.get("resourceClaims") or ():
            template = entry.get("resourceClaimTemplateName")
            if not template or entry["name"] in known:
                continue
            found = await self._api.get(TEMPLATES, template, namespace=meta["namespace"])
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
            claim = await self._api.create(
                CLAIMS,
                {
                    "apiVersion": CLAIMS.api_version,
                    "kind": CLAIMS.kind,
                    "metadata": {
                        "generateName": f"{meta['name']}-{entry['name']}-",
                        "namespace": meta["namespace"],
                        "ownerReferences": [{**owner, "controller": True}],
                    },
                    "spec": found["spec"]["spec"],
                },
            )
            name = claim["metadata"]["name"]
            statuses.append({"name": entry["name"], "resourceClaimName": name})
        if len(statuses) > len(known):
            await self._patch(PODS, pod, {"status": {"resourceClaimStatuses": statuses}}, "status")

    async def _bind(self, pod: Object) -> None:
        meta, spec = pod["metadata"], pod["spec"]
        if spec.get("schedulingGates") or spec.get("nodeName") or ended(pod):
            return
        claims = [self._claims.get(name, meta["namespace"]) for name in claims_of(pod)]
        if not claims or any(not allocation_of(claim) for claim in claims):
            return
        consumer = {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}
        for claim in claims:
            assert claim is not None
            reserved = claim["status"].get("reservedFor") or []
            if consumer not in reserved:
                status = {"status": {"reservedFor": [*reserved, consumer]}}
                await self._patch(CLAIMS, claim, status, "status")
        assert claims[0] is not None
        await self._patch(PODS, pod, {"spec": {"nodeName": node_of(claims[0])}})

    async def _free(self) -> None:
        """Claims of pods that are gone or ended hold nothing any more."""
        pods = {pod["metadata"]["uid"]: pod for pod in self._pods.values()}
        for claim in self._claims.values():
            meta, status = claim["metadata"], claim.get("status") or {}
            owner = next(iter(meta.get("ownerReferences") or ()), None)
            gone = owner is not None and owner["uid"] not in pods
            over = owner is not None and not gone and ended(pods[owner["uid"]])
            reserved = status.get("reservedFor") or []
            left = [one for one in reserved if one["uid"] in pods and not ended(pods[one["uid"]])]
            try:
                if reserved != left or ((gone or over) and status.get("allocation")):
                    change: Object = {"reservedFor": left or None}
                    if not left:
                        change["allocation"] = None
                    await self._patch(CLAIMS, claim, {"status": change}, "status")
                elif gone:
                    await self._api.patch(
                        CLAIMS,
                        meta["name"],
                        {"metadata": {"finalizers": None}},
                        namespace=meta["namespace"],
                    )
                    await self._api.delete(CLAIMS, meta["name"], namespace=meta["namespace"])
            except (ApiConflictError, ApiNotFoundError):
                self._changed.set()

    async def _patch(
        self, resource: Any, raw: Object, body: Object, subresource: str | None = None
    ) -> None:
        meta = raw["metadata"]
        body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, **body}
        stored = await self._api.patch(
            resource, meta["name"], body, namespace=meta["namespace"], subresource=subresource
        )
        (self._pods if resource is PODS else self._claims).observe(stored)


def ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def claims_of(pod: Object) -> list[str]:
    made = {
        one["name"]: one.get("resourceClaimName")
        for one in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    entries: Iterable[Object] = pod["spec"].get("resourceClaims") or ()
    return [
        name
        for one in entries
        if (name := one.get("resourceClaimName") or made.get(one["name"])) is not None
    ]


def allocation_of(claim: Object | None) -> Object:
    found: Object = ((claim or {}).get("status") or {}).get("allocation") or {}
    return found


def node_of(claim: Object) -> str:
    (term,) = allocation_of(claim)["nodeSelector"]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


def devices_of(claim: Object) -> list[tuple[str, str]]:
    """Pool and device of each result."""
    results = (allocation_of(claim).get("devices") or {}).get("results") or ()
    return [(one["pool"], one["device"]) for one in results]
