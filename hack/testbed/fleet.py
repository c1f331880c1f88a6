"""A control plane without kubelets and a fleet of made-up nodes on it: for benchmarks and races.

The scheduler, its API server and etcd are the real ones; only nobody runs the pods.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import yaml

from dragoon.api.claims import ClaimRef, claim_ref
from dragoon.api.names import CLASS_SIMULATED, DRIVER_NAME
from dragoon.app import config, publishing
from dragoon.errors import ApiConflictError
from dragoon.kube.client import KubeClient
from dragoon.kube.connecting import connect
from dragoon.kube.port import CLAIMS, CLASSES, NODES, PODS, SLICES, TEMPLATES, Object, Resource
from dragoon.publish import slices
from realcluster import bringup, teardown
from realcluster.state import Settings, State

NAMESPACE = "default"
_CLASS_FILE: Final = (
    Path(__file__).resolve().parents[2] / "deviceclasses" / f"{CLASS_SIMULATED}.yaml"
)
_WRITERS = 32
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "MadeUp",
    "message": "no kubelet",
    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_ROOM = {"cpu": "128", "memory": "2Ti", "pods": "250"}
_ASKED = {"cpu": "8", "memory": "64Gi"}


@contextmanager
def control_plane(name: str, *, default_rates: bool = False) -> Iterator[State]:
    """A fresh control plane, without client limits if not told otherwise; gone afterwards."""
    teardown.down(name)
    try:
        settings = Settings(scale=True, default_rates=default_rates)
        yield bringup.up(name, node_count=0, settings=settings)
    finally:
        teardown.down(name)


def slices_of(nodes: Iterable[str], machine: str, forms: str = "whole") -> list[Object]:
    """The slices that each node with this simulated machine would publish in these forms."""
    given = {"simulate": machine, "forms": forms, "allow_unenforced_shares": "true"}
    seen = publishing.look_at_forms(config.load(given, {}))
    return [
        piece
        for node in nodes
        for piece in slices.render(
            seen.inventory,
            node=node,
            driver=DRIVER_NAME,
            wishes=seen.wishes,
            divisions=seen.divisions,
        )
    ]


class Fleet:
    """What is written to one control plane."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    @classmethod
    async def connect(cls, kubeconfig: Path) -> "Fleet":
        return cls(await connect(kubeconfig))

    async def close(self) -> None:
        await self._client.close()

    async def create(self, resource: Resource, objects: Iterable[Object]) -> None:
        """Creates all objects with some writers side by side."""
        left = iter(objects)

        async def write() -> None:
            for body in left:
                await self._client.create(resource, body)

        async with asyncio.TaskGroup() as writers:
            for _ in range(_WRITERS):
                writers.create_task(write())

    async def prepare(self, nodes: Iterable[str], published: Iterable[Object]) -> None:
        """Writes nodes, slices and the class of simulated GPUs; returns when no node is tainted."""
        names = list(nodes)
        await self.create(NODES, (_node(name) for name in names))
        await self.create(SLICES, published)
        await self.create(CLASSES, [yaml.safe_load(_CLASS_FILE.read_text("utf-8"))])
        await self._until_schedulable(len(names))

    async def bind(
        self, pods: int, count: int, class_name: str, metadata: Object | None = None
    ) -> float:
        """Seconds from the first create until all pods, `count` devices each, are bound.

        metadata: labels and annotations of each pod.
        """
        await self.create(TEMPLATES, [_template(count, class_name)])
        listing = await self._client.list(PODS, namespace=NAMESPACE)
        watcher = asyncio.create_task(self._until_bound(pods, listing.resource_version))
        started = time.monotonic()
        await self.create(PODS, (_pod(f"p{i:05d}", metadata or {}) for i in range(pods)))
        await watcher
        return time.monotonic() - started

    async def ensure_node(self, name: str) -> None:
        """Makes a Node object, if it is not there."""
        with suppress(ApiConflictError):
            await self._client.create(NODES, _node(name))

    async def until_published(
        self, driver: str, complete: Callable[[list[str]], bool] = bool
    ) -> list[tuple[str, str]]:
        """Waits until the driver's devices are complete, by their names: (pool, device) of each."""
        fields = {"spec.driver": driver}
        while True:
            listing = await self._client.list(SLICES, fields=fields)
            found = [
                (piece["spec"]["pool"]["name"], device["name"])
                for piece in listing.items
                for device in piece["spec"].get("devices") or ()
            ]
            if complete([name for _, name in found]):
                return found
            async for _ in self._client.watch(
                SLICES, resource_version=listing.resource_version, fields=fields
            ):
                break

    async def allocated_claim(
        self, driver: str, pool: str, device: str, *, prefix: str = "bench-"
    ) -> ClaimRef:
        """A claim that has been given this device, as the scheduler would write it."""
        claim = await self._client.create(CLAIMS, _claim(driver, generateName=prefix))
        return await self._allocate(claim, driver, {"pool": pool, "device": device})

    async def pods_own_claim(
        self, driver: str, node: str, result: Object, *, prefix: str
    ) -> ClaimRef:
        """The same, made for one pod there, whose container has its devices."""
        name = f"{prefix}{uuid.uuid4().hex[:8]}"
        pod = await self._client.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {
                    "nodeName": node,
                    "containers": [
                        {"name": "c", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
                    ],
                    "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                },
            },
        )
        uid = pod["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
        claim = await self._client.create(
            CLAIMS, _claim(driver, name=name, ownerReferences=[owner])
        )
        users = [{"resource": "pods", "name": name, "uid": uid}]
        return await self._allocate(claim, driver, result, reservedFor=users)

    async def _allocate(
        self, claim: Object, driver: str, result: Object, **status: Any
    ) -> ClaimRef:
        whole = {"request": "gpu", "driver": driver, **result}
        claim["status"] = {"allocation": {"devices": {"results": [whole]}}, **status}
        return claim_ref(await self._client.replace(CLAIMS, claim, subresource="status"))

    async def delete(self, claims: Iterable[ClaimRef]) -> None:
        """Deletes claims."""
        for claim in claims:
            await self._client.delete(CLAIMS, claim.name, namespace=claim.namespace)

    async def forget(self, claims: Iterable[ClaimRef], driver: str) -> None:
        """Deletes claims, and the driver's slices."""
        await self.delete(claims)
        for piece in (await self._client.list(SLICES, fields={"spec.driver": driver})).items:
            await self._client.delete(SLICES, piece["metadata"]["name"])

    async def _until_bound(self, pods: int, version: str) -> None:
        bound: set[str] = set()
        while len(bound) < pods:
            async for event in self._client.watch(
                PODS, resource_version=version, namespace=NAMESPACE
            ):
                version = event.object["metadata"]["resourceVersion"]
                if event.object.get("spec", {}).get("nodeName"):
                    bound.add(event.object["metadata"]["name"])
                if len(bound) >= pods:
                    return

    async def _until_schedulable(self, count: int) -> None:
        """The node controller takes the taint of a new node away when it has seen it Ready."""
        while True:
            listing = await self._client.list(NODES)
            free = [node for node in listing.items if not node["spec"].get("taints")]
            if len(free) == count:
                return
            async for _ in self._client.watch(NODES, resource_version=listing.resource_version):
                break


def _node(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": _ROOM, "allocatable": _ROOM, "conditions": [_READY]},
    }


def _claim(class_name: str, **metadata: Any) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": class_name}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": NAMESPACE, **metadata},
        "spec": {"devices": {"requests": [request]}},
    }


def _template(count: int, class_name: str) -> Object:
    request: dict[str, Any] = {"deviceClassName": class_name, "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": NAMESPACE},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}},
    }


def _pod(name: str, metadata: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": name, "namespace": NAMESPACE},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "none",
                    "resources": {"claims": [{"name": "gpu"}], "requests": _ASKED},
                }
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
        },
    }
