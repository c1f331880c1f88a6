"""A node whose cards can be offered in all forms, and what is looked for in its slices."""

import contextlib
from collections.abc import AsyncIterator

from dragoon.api import names
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.forms import Form
from dragoon.gpu.mig_memory import MemoryMigCards
from dragoon.gpu.model import Inventory
from dragoon.kube.events import EventRecorder
from dragoon.kube.port import CLAIMS, NODES, PODS, Object
from dragoon.publish.choosing import Wishes
from dragoon.publish.holding import Prepared
from dragoon.publish.looking import Sources
from dragoon.publish.offering import Offering
from dragoon.publish.publisher import Publisher
from tests.scenario.publish.bench import Bench, running, until
from tests.unit.publish.divided import divisible, division
from tests.unit.publish.nodes import DRIVER, NODE

ALL = Wishes(tuple(Form))
HAMI = NodeEnforcement.of([Tier.HAMI])
WHOLE = "gpu-0000-10-00-0"
MIG = f"{WHOLE}-mig-3g40gb-4"
TWO = Inventory(gpus=(divisible(0), divisible(1)))


class Node:
    """One node with two H100, whose journal and cards a test changes."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.prepared: Prepared | None = Prepared()
        self.cards = MemoryMigCards.of([division(number=n).card for n in range(2)])

    async def journal(self) -> Prepared | None:
        return self.prepared

    @contextlib.asynccontextmanager
    async def offering(
        self,
        wishes: Wishes = ALL,
        *,
        interval: float = 0.02,
        settle: float = 0.0,
        enforcement: NodeEnforcement = HAMI,
        published: bool = True,
        patience: float = 60.0,
    ) -> AsyncIterator[tuple[Offering, Publisher]]:
        """The node process, as soon as its devices stand where `published`."""
        own = self.bench.own_node()
        publisher = self.bench.publisher(node=own)
        recorder = EventRecorder(self.bench.api, DRIVER, NODE)
        made = Offering(
            self.bench.api,
            publisher,
            own,
            driver=DRIVER,
            recorder=recorder,
            wishes=wishes,
            sources=Sources(self.cards, self.journal, patience),
            interval=interval,
            settle=settle,
        )
        made.enforce(enforcement)
        made.show(TWO)
        publisher.allow(True)
        async with running(publisher, recorder, made, own):
            if published:
                await publisher.published()
            yield made, publisher

    async def label(self, forms: str | None) -> None:
        labels = {"metadata": {"labels": {names.LABEL_FORMS: forms}}}
        await self.bench.api.patch(NODES, NODE, labels)

    async def devices(self) -> dict[str, Object]:
        return {
            device["name"]: device
            for slice_ in await self.bench.slices()
            for device in slice_["spec"].get("devices", ())
        }

    async def free(self) -> set[str]:
        """The devices without a taint."""
        return {name for name, raw in (await self.devices()).items() if not raw.get("taints")}

    async def pod_with(self, device: str) -> None:
        """A pod on this node whose claim was given the device."""
        claim = {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "x"}}]}},
        }
        made = await self.bench.api.create(CLAIMS, claim)
        result = {"request": "g", "driver": DRIVER, "pool": f"{NODE}/gpu", "device": device}
        status = {"allocation": {"devices": {"results": [result]}}}
        await self.bench.api.replace(CLAIMS, {**made, "status": status}, subresource="status")
        spec = {
            "nodeName": NODE,
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
        await self.bench.api.create(PODS, {**pod, "spec": spec})


async def quiet_rounds(node: Node) -> None:
    """Waits for a few more looks of the offering."""
    looks = _looks(node)
    await until(lambda: _looks(node) >= looks + 4)


def _looks(node: Node) -> int:
    return sum(
        call.verb == "get" and call.resource == NODES for call in node.bench.api.faults.calls
    )


async def has(node: Node, name: str) -> bool:
    return name in await node.devices()


async def gone(node: Node, name: str) -> bool:
    return name not in await node.devices()


async def is_there(node: Node, wanted: set[str]) -> bool:
    return set(await node.devices()) == wanted


async def all_stand(node: Node) -> bool:
    return len(await node.devices()) == 2 * 16


async def free(node: Node, wanted: set[str]) -> bool:
    return await node.free() == wanted
