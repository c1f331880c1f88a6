"""Everybody else: gangs as Jobs, and ordinary pods that kube-scheduler puts on the same devices."""

import asyncio
import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dragoon.api import gang
from dragoon.api.names import CLASS_SIMULATED
from dragoon.errors import ApiError, ApiNotFoundError
from dragoon.kube.client import KubeClient
from dragoon.kube.port import JOBS, PODS, TEMPLATES, Object

_LIFE_S: Final = (0.3, 3.0)
_PAUSE_S: Final = 0.15
SAME_DOMAIN: Final = {"matchAttribute": "gpu.dragoon.dev/nvlinkDomain"}


@dataclass(frozen=True)
class Wish:
    """A gang. size: members. gpus: of each, all in one NVLink domain."""

    name: str
    size: int
    gpus: int

    @property
    def total(self) -> int:
        return self.size * self.gpus

    def fits(self, free: Iterable[int]) -> bool:
        """Whether all members fit. free: GPUs of each node, which are one NVLink domain."""
        return sum(gpus // self.gpus for gpus in free) >= self.size


def wishes(rng: random.Random, room: int) -> Iterator[Wish]:
    """A few gangs that all fit into `room` GPUs together, if they lie well."""
    for number in range(rng.randint(2, 4)):
        gpus = rng.choice((1, 2, 4, 8))
        most = min(8, room // gpus)
        if most < 2:
            return
        wish = Wish(f"g{number}", rng.randint(2, most), gpus)
        room -= wish.total
        yield wish


class Crowd:
    """What is created in one namespace, and deleted again."""

    def __init__(self, client: KubeClient, namespace: str, rng: random.Random) -> None:
        self._client = client
        self._namespace = namespace
        self._rng = rng
        self._count = 0
        self._leaving = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def template(self, gpus: int) -> None:
        """A template for so many GPUs of one NVLink domain, named `gpus-N`."""
        request = {"deviceClassName": CLASS_SIMULATED, "count": gpus}
        spec = {
            "devices": {
                "requests": [{"name": "gpu", "exactly": request}],
                "constraints": [SAME_DOMAIN] if gpus > 1 else [],
            }
        }
        body = self._object(TEMPLATES.api_version, TEMPLATES.kind, f"gpus-{gpus}")
        await self._client.create(TEMPLATES, {**body, "spec": {"spec": spec}})

    async def gang(self, wish: Wish) -> None:
        """A Job whose pods are the gang."""
        body = self._object(JOBS.api_version, JOBS.kind, wish.name)
        metadata = {
            "labels": {gang.LABEL: wish.name},
            "annotations": {gang.ANNOTATION_SIZE: str(wish.size)},
        }
        template = {"metadata": metadata, "spec": self._pod(wish.gpus, restartPolicy="Never")}
        spec = {
            "parallelism": wish.size,
            "completions": wish.size,
            "completionMode": "Indexed",
            "backoffLimit": 1000,
            "template": template,
        }
        await self._client.create(JOBS, {**body, "spec": spec})

    async def come_and_go(self) -> None:
        """Ordinary pods with one or two GPUs, until cancelled."""
        while True:
            self._count += 1
            task = asyncio.create_task(self._live(f"single-{self._count}"))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(_PAUSE_S * self._rng.uniform(0.5, 1.5))

    async def leave(self) -> None:
        """Every ordinary pod is deleted, also one that is just being created."""
        self._leaving.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for pod in (await self._client.list(PODS, namespace=self._namespace)).items:
            if pod["metadata"]["name"].startswith("single-"):
                await self._delete(pod["metadata"]["name"])

    async def _live(self, name: str) -> None:
        body = self._object(PODS.api_version, PODS.kind, name)
        with suppress(ApiError):
            await self._client.create(
                PODS, {**body, "spec": self._pod(self._rng.choice((1, 1, 2)))}
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rng.uniform(*_LIFE_S)):
                    await self._leaving.wait()
            await self._delete(name)

    async def _delete(self, name: str) -> None:
        with suppress(ApiNotFoundError):
            await self._client.delete(PODS, name, namespace=self._namespace)

    def _object(self, api_version: str, kind: str, name: str) -> Object:
        meta = {"name": name, "namespace": self._namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta}

    @staticmethod
    def _pod(gpus: int, **more: str) -> Object:
        container = {"name": "c", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
        claim = {"name": "gpu", "resourceClaimTemplateName": f"gpus-{gpus}"}
        return {"containers": [container], "resourceClaims": [claim], **more}
