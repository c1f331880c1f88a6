"""A small cluster for gangs: nodes with GPUs, a claim controller, a Job controller, kubelets."""

from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

from dragoon.api.gang import GATE, LABEL
from dragoon.api.names import DRIVER_NAME, FINALIZER
from dragoon.errors import ApiNotFoundError, DragoonError
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, GANGS, JOBS, NODES, PODS, SLICES
from tests.property.gang_scheduler import Device, Raw, Scheduler, claims_of, devices_of

NAMESPACE = "team"


class Cluster:
    """Everything but Dragoon's controller. Each method of the parts is one step of a run.

    prepared: which claim (UID) a node's plugin has prepared each device for.
    """

    def __init__(self, rng: Random, *, nodes: int = 2, gpus: int = 2, cpu: int = 8) -> None:
        self.api = MemoryApi(history=1_000_000)
        self.rng = rng
        self.scheduler = Scheduler(self.api, rng)
        self.prepared: dict[Device, str] = {}
        self.waited = 0
        self.members: set[str] = set()
        self._nodes, self._gpus, self._cpu = nodes, gpus, cpu
        self._names = count()

    async def start(self) -> None:
        """Nodes and slices."""
        await self.find_nodes()
        for index in range(self._nodes):
            await self.api.create(SLICES, slice_of(f"node-{index}", self._gpus))

    async def find_nodes(self) -> None:
        """Makes the Nodes that are missing."""
        there = {node["metadata"]["name"] for node in (await self.api.list(NODES)).items}
        for name in sorted({f"node-{index}" for index in range(self._nodes)} - there):
            meta, status = {"name": name}, {"cpu": self._cpu}
            body = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
            await self.api.create(NODES, body)

    async def lose_node(self, name: str) -> None:
        """Somebody deletes a Node, if it is there."""
        with suppress(ApiNotFoundError):
            await self.api.delete(NODES, name)

    async def create_gang(self, size: int, *, job: bool = True, gpus: int = 1) -> Raw:
        """A Gang, and its Job, or bare pods."""
        gang = await self.api.create(
            GANGS,
            {
                "apiVersion": "dragoon.dev/v1alpha1",
                "kind": "Gang",
                "metadata": {"name": "crew", "namespace": NAMESPACE},
                "spec": {"size": size},
            },
        )
        if job:
            await self.api.create(
                JOBS,
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {"name": "crew", "namespace": NAMESPACE},
                    "spec": {"suspend": False, "parallelism": size, "gpus": gpus},
                },
            )
        else:
            for _ in range(size):
                await self.create_pod(gang="crew", gpus=gpus)
        return gang

    async def create_pod(
        self,
        *,
        gang: str = "",
        gpus: int = 1,
        job: Raw | None = None,
        slot: str = "",
        cpu: int = 1,
        node: str = "",
    ) -> Raw:
        """A pod with one claim from a template: a member, gated, or somebody's own.

        node: it names this node, and so has no gate.
        """
        meta: Raw = {"name": f"pod-{next(self._names)}", "namespace": NAMESPACE}
        spec: Raw = {"cpu": cpu, "gpus": gpus}
        if gpus:
            spec["resourceClaims"] = [{"name": "gpus"}]
        if gang:
            meta["labels"] = {LABEL: gang}
            spec["schedulingGates"] = [] if node else [{"name": GATE}]
        if node:
            spec["nodeName"] = node
        if job is not None:
            owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
            owner |= {name: job["metadata"][name] for name in ("name", "uid")}
            meta["ownerReferences"] = [owner]
            meta["annotations"] = {"batch.kubernetes.io/job-completion-index": slot}
        pod = await self.api.create(
            PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        )
        if gang:
            self.members.add(pod["metadata"]["uid"])
        return pod

    # The parts that run by themselves.

    async def claim_controller(self, *, frees: bool = True) -> None:
        """Makes claims of templates; frees, and deletes, those whose consumers are gone.

        frees: whether it has come to that. Claims of bound pods that are allocated and not
        reserved it reserves.
        """
        pods = {pod["metadata"]["uid"]: pod for pod in (await self.api.list(PODS)).items}
        for pod in pods.values():
            if pod["spec"]["gpus"] and not claims_of(pod):
                await self._make_claim(pod)
        for claim in (await self.api.list(CLAIMS)).items if frees else ():
            await self._tidy(claim, pods)
        for pod in pods.values():
            if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                await self._reserve(pod)

    async def _reserve(self, pod: Raw) -> None:
        consumer = {"resource": "pods", **{key: pod["metadata"][key] for key in ("name", "uid")}}
        for claim in (await self.api.list(CLAIMS)).items:
            status = claim.get("status") or {}
            reserved = status.get("reservedFor") or []
            mine = claim["metadata"]["name"] in claims_of(pod)
            if mine and status.get("allocation") and consumer not in reserved:
                body = {
                    "metadata": {"resourceVersion": claim["metadata"]["resourceVersion"]},
                    "status": {"reservedFor": [*reserved, consumer]},
                }
                await self._patch(CLAIMS, claim, body, "status")

    async def _make_claim(self, pod: Raw) -> None:
        meta = pod["metadata"]
        name = f"{meta['name']}-gpus-{next(self._names)}"
        owner = {"apiVersion": "v1", "kind": "Pod", "controller": True}
        owner |= {key: meta[key] for key in ("name", "uid")}
        await self.api.create(CLAIMS, claim_body(name, pod["spec"]["gpus"], owner))
        made = [{"name": "gpus", "resourceClaimName": name}]
        await self._patch(PODS, pod, {"status": {"resourceClaimStatuses": made}}, "status")

    async def _tidy(self, claim: Raw, pods: dict[str, Raw]) -> None:
        meta, status = claim["metadata"], claim.get("status") or {}
        owners = {owner["uid"] for owner in meta.get("ownerReferences") or ()}
        over = {
            uid
            for uid in owners
            if uid not in pods or pods[uid]["status"]["phase"] in {"Succeeded", "Failed"}
        }
        if owners and over == owners and not meta.get("deletionTimestamp"):
            await self.api.delete(CLAIMS, meta["name"], namespace=NAMESPACE)
            return
        reserved = status.get("reservedFor") or []
        valid = [
            one
            for one in reserved
            if one["uid"] in pods
            and pods[one["uid"]]["status"]["phase"] not in {"Succeeded", "Failed"}
        ]
        freed = (len(valid) < len(reserved) or meta.get("deletionTimestamp")) and not valid
        if len(valid) < len(reserved) or (freed and status.get("allocation")):
            new: Raw = {"reservedFor": valid or None}
            if freed:
                new["allocation"] = None
            version = {"resourceVersion": meta["resourceVersion"]}
            await self._patch(CLAIMS, claim, {"metadata": version, "status": new}, "status")
        elif meta.get("deletionTimestamp") and not status.get("allocation"):
            await self._patch(CLAIMS, claim, {"metadata": {"finalizers": []}}, None)

    async def job_controller(self) -> None:
        """Keeps as many pods as the Job wants; none while it is suspended."""
        for job in (await self.api.list(JOBS)).items:
            pods = [
                pod
                for pod in (await self.api.list(PODS)).items
                if any(
                    one["uid"] == job["metadata"]["uid"]
                    for one in pod["metadata"].get("ownerReferences") or ()
                )
            ]
            living = [pod for pod in pods if pod["status"]["phase"] in {"Pending", "Running"}]
            if job["spec"]["suspend"]:
                for pod in living:
                    await self.api.delete(PODS, pod["metadata"]["name"], namespace=NAMESPACE)
                continue
            slots = {
                pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
                for pod in pods
                if pod["status"]["phase"] != "Failed"
            }
            for index in range(job["spec"]["parallelism"]):
                if str(index) not in slots:
                    await self.create_pod(
                        gang="crew", gpus=job["spec"]["gpus"], job=job, slot=str(index)
                    )

    async def kubelets(self) -> None:
        """Prepare what is bound and free on the node; take back what is gone."""
        pods = (await self.api.list(PODS)).items
        named = {
            name
            for pod in pods
            if pod["spec"].get("nodeName") and pod["status"]["phase"] in {"Pending", "Running"}
            for name in claims_of(pod)
        }
        wanted: dict[str, Raw] = {
            claim["metadata"]["uid"]: claim
            for claim in (await self.api.list(CLAIMS)).items
            if claim["metadata"]["name"] in named
        }
        self.prepared = {key: uid for key, uid in self.prepared.items() if uid in wanted}
        for pod in pods:
            if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                await self._start(pod, wanted)

    async def _start(self, pod: Raw, claims: dict[str, Raw]) -> None:
        """A pod runs when every device of it is prepared: the guard waits for the holder."""
        mine = [one for one in claims.values() if one["metadata"]["name"] in claims_of(pod)]
        uid = pod["metadata"]["uid"]
        for claim in mine:
            reserved = (claim.get("status") or {}).get("reservedFor") or ()
            if not any(one["uid"] == uid for one in reserved):
                return
            for device in devices_of(claim):
                if self.prepared.get(device, claim["metadata"]["uid"]) != claim["metadata"]["uid"]:
                    self.waited += 1
                    return
        for claim in mine:
            for device in devices_of(claim):
                self.prepared[device] = claim["metadata"]["uid"]
        await self._patch(PODS, pod, {"status": {"phase": "Running"}}, "status")

    async def finish(self, pod: Raw, phase: str = "Succeeded") -> None:
        """A running pod ends."""
        await self._patch(PODS, pod, {"status": {"phase": phase}}, "status")

    async def delete(self, pod: Raw) -> None:
        """Somebody deletes a pod."""
        await self.api.delete(PODS, pod["metadata"]["name"], namespace=NAMESPACE)

    async def pods(self, *phases: str) -> list[Raw]:
        """The pods, in these phases."""
        found = (await self.api.list(PODS)).items
        return [pod for pod in found if not phases or pod["status"]["phase"] in phases]

    async def strangers(self) -> list[Raw]:
        """Pods that are no members."""
        return [pod for pod in await self.pods() if pod["metadata"]["uid"] not in self.members]

    async def crew(self) -> list[Raw]:
        """Members."""
        return [pod for pod in await self.pods() if pod["metadata"]["uid"] in self.members]

    async def holders(self) -> dict[Device, list[str]]:
        """The claims (UID) that hold each device."""
        found: dict[Device, list[str]] = {}
        for claim in (await self.api.list(CLAIMS)).items:
            for device in devices_of(claim):
                found.setdefault(device, []).append(claim["metadata"]["uid"])
        return found

    async def _patch(self, resource: Any, found: Raw, body: Raw, subresource: str | None) -> None:
        """A write of a controller that tries again later if it lost a race."""
        try:
            await self.api.patch(
                resource,
                found["metadata"]["name"],
                body,
                namespace=NAMESPACE,
                subresource=subresource,
            )
        except DragoonError:
            return


def slice_of(node: str, gpus: int) -> Raw:
    """A node's pool of whole GPUs."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": DRIVER_NAME,
            "nodeName": node,
            "pool": {"name": f"{node}/gpu", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{index}"} for index in range(gpus)],
        },
    }


def claim_body(name: str, gpus: int, owner: Raw | None) -> Raw:
    """A claim for whole GPUs."""
    meta: Raw = {"name": name, "namespace": NAMESPACE, "finalizers": [FINALIZER]}
    if owner is not None:
        meta["ownerReferences"] = [owner]
    exactly = {"deviceClassName": DRIVER_NAME, "count": gpus}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
