"""A node with GPUs, an API server in memory, and engines on them: what tests of prepare start from."""

import asyncio
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.api.forms import DEFAULT, Form
from dragoon.gpu.model import Gpu, Inventory, PciAddress
from dragoon.gpu.naming import whole_name
from dragoon.gpu.port import FixedGpus
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, PODS, Object
from dragoon.prepare.clock import ManualClock
from dragoon.prepare.effects import Effects
from dragoon.prepare.effects_memory import Crash, Faults, MemoryDisk, MemoryEffects
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.engine import Engine
from dragoon.prepare.settings import PrepareSettings

T = TypeVar("T")

DRIVER = "gpu.dragoon.dev"
NODE = "node-a"
POOL = "node-a/gpu"


def gpu(number: int, **changes: Any) -> Gpu:
    """The n-th GPU of a node, at bus 0x10 + n."""
    fields: dict[str, Any] = {
        "address": PciAddress(0, 0x10 + number, 0),
        "index": number,
        "uuid": f"GPU-{number:08d}-0000-0000-0000-000000000000",
        "minor": number,
    }
    return Gpu(**(fields | changes))


def device(number: int) -> str:
    return whole_name(PciAddress(0, 0x10 + number, 0))


def inventory(count: int = 4, *, simulated: bool = True) -> Inventory:
    return Inventory(gpus=tuple(gpu(n) for n in range(count)), simulated=simulated)


def result(number: int = 0, **changes: Any) -> dict[str, Any]:
    """One result of an allocation."""
    fields = {"request": "gpu", "driver": DRIVER, "pool": POOL, "device": device(number)}
    return fields | changes


def settings(root: Path, **changes: Any) -> PrepareSettings:
    fields: dict[str, Any] = {
        "driver": DRIVER,
        "node": NODE,
        "state_folder": root / "state",
        "cdi_folder": root / "cdi",
    }
    return PrepareSettings(**(fields | changes))


def claim_object(name: str, *results: dict[str, Any], config: Any = ()) -> Object:
    """An allocated claim as the API server has it, but for what the server sets itself."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"devices": {"requests": [_request(one) for one in _requests(results)]}},
        "status": {
            "allocation": {
                "devices": {"results": list(results), "config": list(config)},
            }
        },
    }


def _requests(results: tuple[dict[str, Any], ...]) -> list[str]:
    return list(dict.fromkeys(one["request"] for one in results))


def _request(name: str) -> dict[str, Any]:
    parent, slash, child = name.partition("/")
    if slash:
        return {
            "name": parent,
            "firstAvailable": [{"name": child, "deviceClassName": DRIVER}],
        }
    return {"name": parent, "exactly": {"deviceClassName": DRIVER}}


@dataclass(eq=False)
class Scene:
    """One node. `engine` starts a plugin process on it; several may run at once."""

    root: Path = Path("/node")
    disk: MemoryDisk = field(default_factory=MemoryDisk)
    api: MemoryApi = field(default_factory=MemoryApi)
    gpus: FixedGpus = field(default_factory=lambda: FixedGpus(inventory()))
    clock: ManualClock = field(default_factory=ManualClock)
    events: list[Any] = field(default_factory=list)
    enforcement: Enforcement | None = None

    def engine(
        self,
        effects: Effects | None = None,
        *,
        faults: Faults | None = None,
        look: Callable[[], Any] | None = None,
        forms: Callable[[], Collection[Form]] = lambda: DEFAULT,
        **changes: Any,
    ) -> Engine:
        async def found() -> Inventory:
            return self.gpus.found

        return Engine(
            self.api,
            look or found,
            effects or MemoryEffects(self.disk, faults),
            settings(self.root, **changes),
            enforcement=self.enforcement,
            forms=forms,
            clock=self.clock,
            observer=self.events.append,
        )

    async def started(
        self, effects: Effects | None = None, *, faults: Faults | None = None, **changes: Any
    ) -> Engine:
        engine = self.engine(effects, faults=faults, **changes)
        await engine.start()
        return engine

    async def claim(self, name: str, *results: dict[str, Any], config: Any = ()) -> ClaimRef:
        """Creates an allocated claim, by default of the first GPU."""
        body = claim_object(name, *(results or (result(),)), config=config)
        created = await self.api.create(CLAIMS, body)
        body["metadata"] = created["metadata"]
        await self.api.replace(CLAIMS, body, subresource="status")
        return ClaimRef("team-a", name, created["metadata"]["uid"])

    async def half_prepared(self, claim: ClaimRef, *, done: int = 5) -> None:
        """A plugin process dies in the middle of it, after so many effects.

        Five write the journal, which then says that it has begun.
        """
        effects = MemoryEffects(self.disk)
        engine = await self.started(effects)
        effects.faults = Faults(crash_at=len(effects.performed) + done)
        with pytest.raises(Crash):
            await engine.prepare(claim)

    async def pod(self, name: str, claim: ClaimRef, *, node: str = NODE, **status: Any) -> Object:
        """Creates a pod that has reserved a claim and, if not told otherwise, runs."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": claim.namespace},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        }
        created = await self.api.create(PODS, body)
        body["metadata"] = created["metadata"]
        body["status"] = {"phase": "Running", "containerStatuses": [running()]} | status
        pod = await self.api.replace(PODS, body, subresource="status")
        held = await self.api.get(CLAIMS, claim.name, namespace=claim.namespace)
        held["status"].setdefault("reservedFor", []).append(
            {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
        )
        await self.api.replace(CLAIMS, held, subresource="status")
        return pod

    async def deallocate(self, claim: ClaimRef) -> None:
        """What happens to the claim of a pod that was force-deleted."""
        held = await self.api.get(CLAIMS, claim.name, namespace=claim.namespace)
        held["status"] = {}
        await self.api.replace(CLAIMS, held, subresource="status")

    async def allocate(self, claim: ClaimRef, *results: dict[str, Any]) -> None:
        """Allocates a claim that has no allocation."""
        held = await self.api.get(CLAIMS, claim.name, namespace=claim.namespace)
        held["status"] = {"allocation": {"devices": {"results": list(results)}}}
        await self.api.replace(CLAIMS, held, subresource="status")

    def told(self, kind: type[T]) -> list[T]:
        """The events of one kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def files(self) -> dict[str, bytes]:
        """What is on the disk below the node's root, but for the lock file."""
        return {
            str(path.relative_to(self.root)): data
            for path, data in self.disk.files().items()
            if path.is_relative_to(self.root)
        }


def running() -> dict[str, Any]:
    return {"name": "c", "state": {"running": {"startedAt": "2026-11-29T00:00:00Z"}}}


def ended() -> dict[str, Any]:
    return {"name": "c", "state": {"terminated": {"exitCode": 0}}}


class GatedEffects(MemoryEffects):
    """A process that stops in the middle of its effects until it is let go on."""

    def __init__(self, disk: MemoryDisk) -> None:
        super().__init__(disk)
        self.reached = threading.Event()
        self.go = threading.Event()

    def sync(self, path: Path) -> None:
        self.reached.set()
        self.go.wait()
        super().sync(path)


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop run until a condition holds; the test's own time-out ends it otherwise."""
    while not condition():  # noqa: ASYNC110 - the condition is of threads too, not of one loop
        await asyncio.sleep(0.001)


async def pass_time(scene: Scene, task: asyncio.Task[Any]) -> None:
    """Moves the clock, step by step, until a task ends."""
    while not task.done():
        await until(lambda: task.done() or scene.clock.sleeping > 0)
        scene.clock.advance(0.5)
