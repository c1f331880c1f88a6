"""A small kube-scheduler: decides from a copy that lags, writes later, keeps devices in a set.

What it does like the real one is what the gang protocol depends on: its
decisions land after a rule that it has not seen; a device is a name in a set, gone from it when any
holder lets go; an allocated claim is not allocated again; PostFilter clears allocations of pods
that are not pinned; a failed attempt clears the nomination; it preempts nobody.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from dragoon.errors import DragoonError
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, NODES, PODS, SLICES, TAINT_RULES

Raw = dict[str, Any]
Device = tuple[str, str]


def devices_of(claim: Raw) -> set[Device]:
    """Pool and name of what a claim holds."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {(one["pool"], one["device"]) for one in results}


def cpu_left(node: Raw, pods: list[Raw], *but: str) -> int:
    """CPU of a node that bound and nominated pods leave, some pods not counted."""
    used = sum(
        pod["spec"]["cpu"]
        for pod in pods
        if pod["metadata"]["uid"] not in but
        and pod["status"]["phase"] not in {"Succeeded", "Failed"}
        and node["metadata"]["name"]
        in {pod["spec"].get("nodeName"), pod["status"].get("nominatedNodeName")}
    )
    return int(node["status"]["cpu"]) - int(used)


def claims_of(pod: Raw) -> list[str]:
    """Names of a pod's claims, as far as they were made."""
    made = {one["name"]: one["resourceClaimName"] for one in _made(pod)}
    names = []
    for one in pod["spec"].get("resourceClaims") or ():
        name = one.get("resourceClaimName") or made.get(one["name"])
        if name:
            names.append(name)
    return names


def _made(pod: Raw) -> list[Raw]:
    return list(pod["status"].get("resourceClaimStatuses") or ())


@dataclass
class Decision:
    """An attempt that was decided and is not written yet. given: allocations by claim name."""

    pod: Raw
    node: str
    given: dict[str, Raw] = field(default_factory=dict)

    @property
    def devices(self) -> set[Device]:
        found: set[Device] = set()
        for allocation in self.given.values():
            found |= devices_of({"status": {"allocation": allocation}})
        return found


class Scheduler:
    """decided: claims (UID) that it allocated itself. taints: rules that it has seen."""

    def __init__(self, api: MemoryApi, rng: Random) -> None:
        self._api = api
        self._rng = rng
        self.in_flight: list[Decision] = []
        self.decided: set[str] = set()
        self.taken: set[Device] = set()
        self.tainted: set[str] = set()
        self._claims: dict[str, Raw] = {}
        self._pods: list[Raw] = []
        self._nodes: list[Raw] = []
        self._slices: list[Raw] = []

    async def sync(self) -> None:
        """Its informers catch up."""
        claims = (await self._api.list(CLAIMS)).items
        new = {claim["metadata"]["uid"]: claim for claim in claims}
        for uid, claim in self._claims.items():
            self.taken -= devices_of(claim) - devices_of(new.get(uid, {}))
        for uid, claim in new.items():
            self.taken |= devices_of(claim) - devices_of(self._claims.get(uid, {}))
        self._claims = new
        self._pods = list((await self._api.list(PODS)).items)
        self._nodes = list((await self._api.list(NODES)).items)
        self._slices = list((await self._api.list(SLICES)).items)
        rules = (await self._api.list(TAINT_RULES)).items
        self.tainted = {rule["spec"]["deviceSelector"]["pool"] for rule in rules}

    async def attempt(self) -> None:
        """Tries one pod that waits."""
        busy = {one.pod["metadata"]["uid"] for one in self.in_flight}
        waiting = [
            pod
            for pod in self._pods
            if not pod["spec"].get("schedulingGates")
            and not pod["spec"].get("nodeName")
            and pod["status"]["phase"] == "Pending"
            and pod["metadata"]["uid"] not in busy
        ]
        if not waiting:
            return
        pod = self._rng.choice(waiting)
        by_name = {claim["metadata"]["name"]: claim for claim in self._claims.values()}
        named = [by_name.get(name) for name in claims_of(pod)]
        if len(named) < len(pod["spec"].get("resourceClaims") or ()) or None in named:
            return
        claims = [claim for claim in named if claim is not None]
        for node in self._nodes:
            given = self._fits(pod, node, claims)
            if given is not None:
                self.in_flight.append(Decision(pod, node["metadata"]["name"], given))
                return
        await self._failed(pod, claims)

    def _fits(self, pod: Raw, node: Raw, claims: list[Raw]) -> dict[str, Raw] | None:
        name = node["metadata"]["name"]
        pins = set(pinned_to(pod))
        if (pins and pins != {name}) or cpu_left(node, self._pods, pod["metadata"]["uid"]) < pod[
            "spec"
        ]["cpu"]:
            return None
        given: dict[str, Raw] = {}
        free = list(self._free(name))
        for claim in claims:
            allocation = (claim.get("status") or {}).get("allocation")
            if allocation:
                if node_of(allocation) != name:
                    return None
                continue
            count = claim["spec"]["devices"]["requests"][0]["exactly"]["count"]
            if len(free) < count:
                return None
            chosen, free = free[:count], free[count:]
            given[claim["metadata"]["name"]] = allocation_of(name, chosen)
        return given

    def _free(self, node: str) -> Iterator[Device]:
        assumed = set().union(*(one.devices for one in self.in_flight))
        for one in self._slices:
            pool = one["spec"]["pool"]["name"]
            if one["spec"]["nodeName"] == node and pool not in self.tainted:
                for device in one["spec"]["devices"]:
                    if (pool, device["name"]) not in self.taken | assumed:
                        yield pool, device["name"]

    async def _failed(self, pod: Raw, claims: list[Raw]) -> None:
        """The pod fits nowhere: condition, nomination, PostFilter."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0 nodes are available",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        body = {
            "metadata": {"uid": pod["metadata"]["uid"]},
            "status": {"conditions": [condition], "nominatedNodeName": None},
        }
        await self._try(PODS, pod, body)
        if pinned_to(pod):
            return
        for claim in claims:
            status = claim.get("status") or {}
            if status.get("allocation") and not status.get("reservedFor"):
                version = claim["metadata"]["resourceVersion"]
                body = {"metadata": {"resourceVersion": version}, "status": {"allocation": None}}
                await self._try(CLAIMS, claim, body)

    async def land(self) -> None:
        """Writes the oldest decision: claims, then the binding."""
        if not self.in_flight:
            return
        decision = self.in_flight.pop(0)
        namespace = decision.pod["metadata"]["namespace"]
        for name in claims_of(decision.pod):
            if not await self._reserve(namespace, name, decision):
                return
        body = {
            "metadata": {"uid": decision.pod["metadata"]["uid"]},
            "spec": {"nodeName": decision.node},
        }
        await self._try(PODS, decision.pod, body, None)

    async def _reserve(self, namespace: str, name: str, decision: Decision) -> bool:
        try:
            claim = await self._api.get(CLAIMS, name, namespace=namespace)
        except DragoonError:
            return False
        status = claim.get("status") or {}
        wanted = decision.given.get(name)
        if (status.get("allocation") is None) != (wanted is not None):
            return False
        consumer = {
            "resource": "pods",
            "name": decision.pod["metadata"]["name"],
            "uid": decision.pod["metadata"]["uid"],
        }
        new: Raw = {"reservedFor": [*(status.get("reservedFor") or ()), consumer]}
        if wanted is not None:
            new["allocation"] = wanted
        meta = {"resourceVersion": claim["metadata"]["resourceVersion"]}
        if not await self._try(CLAIMS, claim, {"metadata": meta, "status": new}):
            return False
        if wanted is not None:
            # Its own writes are in its memory at once.
            uid = claim["metadata"]["uid"]
            self.decided.add(uid)
            self._claims[uid] = {**claim, "status": new}
            self.taken |= devices_of(self._claims[uid])
        return True

    async def _try(
        self, resource: Any, found: Raw, body: Raw, subresource: str | None = "status"
    ) -> bool:
        meta = found["metadata"]
        try:
            await self._api.patch(
                resource,
                meta["name"],
                body,
                namespace=meta["namespace"],
                subresource=subresource,
            )
        except DragoonError:
            return False
        return True


def allocation_of(node: str, devices: list[Device]) -> Raw:
    """status.allocation of whole devices on a node."""
    return {
        "allocationTimestamp": "2026-01-01T00:00:00Z",
        "devices": {
            "results": [
                {"request": "gpu", "driver": "gpu.dragoon.dev", "pool": pool, "device": device}
                for pool, device in devices
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            ]
        },
    }


def node_of(allocation: Raw) -> str:
    """The node of an allocation."""
    term = allocation["nodeSelector"]["nodeSelectorTerms"][0]
    return str(term["matchFields"][0]["values"][0])


def pinned_to(pod: Raw) -> list[str]:
    """The nodes that the pod's required affinity admits by name; none: all are."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return [
        name
        for term in required.get("nodeSelectorTerms") or ()
        for one in term.get("matchFields") or ()
        for name in one["values"]
    ]
