"""An API server in memory with one node, and publishers for that node."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from dragoon.api.slice_validation import check_pool, check_slice
from dragoon.gpu.model import Inventory, LostGpu
from dragoon.kube.backoff import Backoff
from dragoon.kube.faults import Call
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NODES, SLICES, Object
from dragoon.publish.device import Device
from dragoon.publish.devices import build
from dragoon.publish.offer import Offer
from dragoon.publish.own_node import OwnNode
from dragoon.publish.pacing import Pace
from dragoon.publish.publisher import Publisher
from dragoon.telemetry.metrics import Metrics
from testbed.waiting import PATIENCE
from tests.unit.publish.nodes import DRIVER, NODE, address, gpu, inventory

FAST = Pace(
    wipe=0.005,
    edit=0.02,
    first_retry=0.01,
    last_retry=0.05,
    first_refused=0.05,
    last_refused=0.1,
    probe=0.1,
    rest=0.0,
)
WRITES = {"create", "replace", "patch", "delete"}
FINE = build(inventory()).devices
MANY = tuple(Device(f"gpu-{n:03d}", {"type": {"string": "gpu"}}, {}) for n in range(130))
MORE = build(inventory(gpu(0), gpu(1), gpu(2))).devices
LOST = build(inventory(gpu(0), lost=(LostGpu(address(1), "no answer"),))).devices


async def until(condition: Callable[[], bool | Awaitable[bool]], within: float = PATIENCE) -> None:
    """Returns as soon as the condition holds; fails when it does not in time."""
    async with asyncio.timeout(within):
        while True:
            held = condition()
            if held if isinstance(held, bool) else await held:
                return
            await asyncio.sleep(0.005)


@dataclass
class Bench:
    """The server and what stands in it."""

    api: MemoryApi = field(default_factory=MemoryApi)
    metrics: Metrics = field(default_factory=lambda: Metrics("test"))

    async def node(self, **status: Any) -> Object:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "status": status}
        return await self.api.create(NODES, node)

    async def slices(self) -> list[Object]:
        listing = await self.api.list(SLICES, fields={"spec.driver": DRIVER})
        return sorted(listing.items, key=lambda each: each["metadata"]["name"])

    async def names(self) -> list[str]:
        """The published devices in the order in which the allocator sees them."""
        return [d["name"] for s in await self.slices() for d in s["spec"].get("devices", ())]

    async def shows(self, devices: tuple[Device, ...]) -> bool:
        """Whether the pool is complete, valid and holds exactly these devices."""
        slices = await self.slices()
        pools = [each["spec"]["pool"] for each in slices]
        return (
            bool(pools)
            and all(pool == pools[0] for pool in pools)
            and pools[0]["resourceSliceCount"] == len(pools)
            and not any(check_slice(each) for each in slices)
            and not check_pool(slices)
            and await self.names() == [device.name for device in devices]
        )

    async def wipe(self) -> None:
        """What the kubelet does at its start."""
        for each in await self.slices():
            await self.api.delete(SLICES, each["metadata"]["name"])

    async def edit(self, **spec: Any) -> None:
        """Somebody changes the first slice."""
        first = (await self.slices())[0]
        await self.api.replace(SLICES, {**first, "spec": {**first["spec"], **spec}})

    def calls(self, *verbs: str) -> list[Call]:
        return [
            call
            for call in self.api.faults.calls
            if call.resource == SLICES and call.verb in (verbs or WRITES)
        ]

    def own_node(self) -> OwnNode:
        backoff = Backoff(first=FAST.first_retry, limit=FAST.last_retry)
        return OwnNode(self.api, NODE, backoff=backoff)

    def publisher(self, pace: Pace = FAST, *, node: OwnNode | None = None) -> Publisher:
        node = node or self.own_node()
        return Publisher(self.api, node, driver=DRIVER, metrics=self.metrics, pace=pace)

    def metric(self, line: str) -> bool:
        """Whether the metrics say so: name, labels and value as scraped."""
        return line in self.metrics.text().decode().splitlines()


async def quiet(bench: Bench) -> None:
    """Waits until nobody has called the server for five of a publisher's longest waits in a row.

    That nothing happens can only be seen by looking long enough.
    """
    silent = 0
    while silent < 5:
        before = len(bench.api.faults.calls)
        await asyncio.sleep(FAST.edit)
        silent = silent + 1 if len(bench.api.faults.calls) == before else 0


@contextlib.asynccontextmanager
async def running(*parts: Any) -> AsyncIterator[None]:
    """Runs publishers and the like until the end of the block."""
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends


@contextlib.asynccontextmanager
async def publishing(
    bench: Bench, devices: tuple[Device, ...] = FINE, pace: Pace = FAST
) -> AsyncIterator[Publisher]:
    """A publisher that has published."""
    node = bench.own_node()
    publisher = bench.publisher(pace, node=node)
    publisher.offer(Offer(devices))
    publisher.allow(True)
    async with running(publisher, node):
        async with asyncio.timeout(PATIENCE):
            await publisher.published()
        yield publisher


def offered(found: Inventory, **known: Any) -> tuple[Device, ...]:
    return build(found, **known).devices
