"""The node process in a test: on an in-memory API server, below a folder of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from dragoon.api.claims import ClaimRef, claim_ref
from dragoon.app.config import PluginConfig
from dragoon.app.plugin import Plugin
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.port import Gpus
from dragoon.health.watching import Sources
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, NODES, PODS, SLICES, Api, Object
from dragoon.kubelet.standin import KubeletStandIn
from dragoon.prepare.effects import Effects
from testbed.waiting import PATIENCE

NODE = "n1"
DRIVER = "gpu.dragoon.dev"


async def until(what: str, condition: Callable[[], Any], *, within: float = PATIENCE) -> None:
    """Waits for a condition that nobody announces; it may be a coroutine function."""
    try:
        async with asyncio.timeout(within):
            while True:
                found = condition()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {within:g} s: {what}") from None


class Bed:
    """One node: its folders, its API server, its simulated hardware, its kubelet."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.memory = MemoryApi()
        self.kubelet_root = root / "k"
        self.kubelet_root.mkdir()
        self.cdi_root = root / "cdi"

    async def create_node(self) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        await self.memory.create(NODES, node)

    async def label(self, key: str, value: str) -> None:
        await self.memory.patch(NODES, NODE, {"metadata": {"labels": {key: value}}})

    def config(self, **changes: Any) -> PluginConfig:
        values = {
            "node_name": NODE,
            "kubelet_root": str(self.kubelet_root),
            "cdi_root": str(self.cdi_root),
            "proc_root": "/proc",
            "listen": "127.0.0.1:0",
        }
        return PluginConfig(**(values | changes))

    def gpus(self, machine: str = "dgx-h100") -> NvmlGpus:
        return open_gpus(machine, self.root / "gpus.json", node=NODE, beside_driver=True)

    @contextlib.asynccontextmanager
    async def running(
        self,
        gpus: Gpus | None = None,
        *,
        api: Api | None = None,
        health: Sources | None = None,
        effects: Effects | None = None,
        first_look: float = 10.0,
        **settings: Any,
    ) -> AsyncIterator[Plugin]:
        """The node process, stopped as by SIGTERM at the end."""
        mine = gpus or self.gpus()
        audited = mine if isinstance(mine, NvmlGpus) else None
        if health is None and audited:
            health = Sources(audited.events, audited.conditions, audited.mig)
        plugin = Plugin(
            self.config(**settings),
            gpus=mine,
            api=api or self.memory,
            mig=audited.mig if audited else None,
            processes=audited.processes if audited else None,
            health=health,
            effects=effects,
            proc_root=audited.roots.proc if audited else None,
            first_look=first_look,
        )
        stop = asyncio.Event()
        life = asyncio.create_task(plugin.run(stop))
        try:
            yield plugin
        finally:
            stop.set()
            await life
            mine.close()

    @contextlib.asynccontextmanager
    async def kubelet(self) -> AsyncIterator[KubeletStandIn]:
        """The kubelet of the node; a second one is the kubelet after a restart."""
        standin = KubeletStandIn(
            self.kubelet_root, api=self.memory, node=NODE, notify_seconds=PATIENCE
        )
        life = asyncio.create_task(standin.run())
        try:
            yield standin
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)

    async def slices(self) -> tuple[Object, ...]:
        return (await self.memory.list(SLICES)).items

    async def slices_become(
        self, what: str, wanted: Callable[[tuple[Object, ...]], bool]
    ) -> tuple[Object, ...]:
        """The slices, as soon as they are as wanted."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not wanted(found := await self.slices()):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"not within {PATIENCE:g} s: {what}") from None
        return found

    async def allocated_claim(self, name: str, *devices: str) -> ClaimRef:
        """A claim to which the scheduler has given these devices."""
        request = {"name": "gpu", "exactly": {"deviceClassName": "sim.dragoon.dev"}}
        claim = await self.memory.create(
            CLAIMS,
            {
                "apiVersion": CLAIMS.api_version,
                "kind": CLAIMS.kind,
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
            },
        )
        results = [
            {"request": "gpu", "driver": DRIVER, "pool": f"{NODE}/gpu", "device": device}
            for device in devices
        ]
        claim["status"] = {"allocation": {"devices": {"results": results}}}
        return claim_ref(await self.memory.replace(CLAIMS, claim, subresource="status"))

    async def sharer(self, *, container: str = "main", image: str = "none") -> Object:
        """A pod here whose only container uses the claim `share`: as that claim names its owner."""
        uses = {"name": container, "image": image, "resources": {"claims": [{"name": "gpu"}]}}
        pod = await self.memory.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "sharer", "namespace": "default"},
                "spec": {
                    "nodeName": NODE,
                    "containers": [uses],
                    "resourceClaims": [{"name": "gpu", "resourceClaimName": "share"}],
                },
            },
        )
        uid = pod["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "Pod", "name": "sharer", "uid": uid, "controller": True}
