"""What the kubelets of nodes without one would say: pods run, end, and go when they are deleted."""

import asyncio
import random
from contextlib import suppress
from typing import Any, Final

import aiohttp

from dragoon.errors import ApiError
from dragoon.kube.client import KubeClient
from dragoon.kube.port import PODS, Object
from racecampaign.reaching import Reach, delete

_DYING_S: Final = 0.2
"""How long a container needs to end, at most."""


class StandIn:
    """Follows all pods until cancelled."""

    def __init__(self, client: KubeClient, reach: Reach, rng: random.Random) -> None:
        self._client = client
        self._rng = rng
        self._reach = reach
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        async with self._reach.session() as session:
            try:
                await self._follow(session)
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, session: aiohttp.ClientSession) -> None:
        listing = await self._client.list(PODS)
        for pod in listing.items:
            self._look(session, pod)
        version = listing.resource_version
        while True:
            async for event in self._client.watch(PODS, resource_version=version):
                version = event.object["metadata"]["resourceVersion"]
                if event.kind in {"ADDED", "MODIFIED"}:
                    self._look(session, event.object)

    def _look(self, session: aiohttp.ClientSession, pod: Object) -> None:
        if not pod["spec"].get("nodeName"):
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._do(self._end(session, pod))
        elif pod["status"].get("phase") == "Pending":
            self._do(self._start(pod))

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, pod: Object) -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"phase": "Running", "conditions": [ready], "startTime": "2026-01-01T00:00:00Z"}
        meta = pod["metadata"]
        with suppress(ApiError):
            await self._client.patch(
                PODS,
                meta["name"],
                {"metadata": {"uid": meta["uid"]}, "status": status},
                namespace=meta["namespace"],
                subresource="status",
            )

    async def _end(self, session: aiohttp.ClientSession, pod: Object) -> None:
        await asyncio.sleep(self._rng.random() * _DYING_S)
        meta = pod["metadata"]
        await delete(
            session,
            f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
            gracePeriodSeconds=0,
            preconditions={"uid": meta["uid"]},
        )
