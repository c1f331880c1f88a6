"""A node with claims prepared on it, and processes on its cards: what tests of the audit start from."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoon.api.enforcement import Tier
from dragoon.errors import DeviceLostError
from dragoon.gpu.limits_memory import MemoryCaps
from dragoon.gpu.mig import GpuProcess
from dragoon.gpu.model import PciAddress
from dragoon.kube.port import PODS, Object
from dragoon.prepare.audit.auditing import Audit
from dragoon.prepare.audit.judging import Cause, Finding
from dragoon.prepare.effects_memory import MemoryEffects
from tests.unit.prepare.scene import Scene, gpu, settings
from tests.unit.prepare.sharing import GIB, sharing_scene

MONITOR = "/system.slice/nvidia-dcgm.service"


@dataclass
class Bed:
    """`proc` is the node's procfs; `listed` is what the driver says of each card.

    hangs: cards about which it says nothing before `go`.
    """

    proc: Path
    scene: Scene
    listed: dict[PciAddress, tuple[GpuProcess, ...]] = field(default_factory=dict)
    lost: set[PciAddress] = field(default_factory=set)
    limits: MemoryCaps | None = None
    hangs: set[PciAddress] = field(default_factory=set)
    go: threading.Event = field(default_factory=threading.Event)
    patience: float = 60.0
    reports: list[tuple[Finding, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = settings(self.scene.root, cgroup_root=self.proc / "cgroup")
        self.audit = Audit(
            self.scene.api,
            MemoryEffects(self.scene.disk),
            self.settings,
            cards=lambda: [one.address for one in self.scene.gpus.found.gpus],
            processes=self.processes,
            report=self.reports.append,
            limits=self.limits,
            proc_root=self.proc,
            clock=self.scene.clock,
            observer=self.scene.events.append,
            patience=self.patience,
        )

    def processes(self, address: PciAddress) -> tuple[GpuProcess, ...]:
        if address in self.hangs:
            assert self.go.wait(60)
        if address in self.lost:
            raise DeviceLostError(f"GPU {address}: gone")
        return self.listed.get(address, ())

    def run(
        self, card: int, pid: int, cgroup: str, *, used: int = GIB, inner: int = 1, **where: int
    ) -> None:
        """A process starts to use a card."""
        address = gpu(card).address
        process = GpuProcess(pid, used, name="python", **where)
        rest = tuple(one for one in self.listed.get(address, ()) if one.pid != pid)
        self.listed[address] = (*rest, process)
        folder = self.proc / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "cgroup").write_text(f"0::{cgroup}\n")
        (folder / "status").write_text(f"Name:\tpython\nNSpid:\t{pid}\t{inner}\n")
        (folder / "stat").write_text(f"{pid} (py) th) S {'0 ' * 18}{pid * 10} 0 0\n")

    def end(self, card: int, pid: int) -> None:
        address = gpu(card).address
        self.listed[address] = tuple(one for one in self.listed[address] if one.pid != pid)

    async def twice(self) -> tuple[Finding, ...]:
        """What stands after the two looks that a finding needs."""
        await self.audit.look()
        self.scene.clock.advance(15)
        return await self.audit.look()

    async def causes(self) -> set[Cause]:
        return {one.cause for one in await self.twice()}


def bed(tmp_path: Path, *tiers: Tier, limits: MemoryCaps | None = None) -> Bed:
    return Bed(tmp_path, sharing_scene(*tiers), limits=limits)


def cgroup_of(pod: Any, container: str = "main") -> str:
    """Where a container's processes are."""
    uid = pod["metadata"]["uid"].replace("-", "_")
    identity = container_id(pod, container)
    return f"/kubepods.slice/kubepods-pod{uid}.slice/cri-containerd-{identity}.scope"


def container_id(pod: Any, container: str) -> str:
    uid = str(pod["metadata"]["uid"]).replace("-", "")
    return (uid + container.encode().hex()).ljust(64, "0")[:64]


async def running(scene: Scene, pod: Object) -> Object:
    """The kubelet reports the containers of a pod."""
    pod["status"] = (pod.get("status") or {}) | {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": one["name"],
                "containerID": f"containerd://{container_id(pod, one['name'])}",
                "state": {"running": {"startedAt": "2026-11-29T00:00:00Z"}},
            }
            for one in pod["spec"]["containers"]
        ],
    }
    return await scene.api.replace(PODS, pod, subresource="status")


async def plain_pod(scene: Scene, name: str, **meta: Any) -> Object:
    """A running pod without claims."""
    created = await scene.api.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "team-a", **meta},
            "spec": {"nodeName": "node-a", "containers": [{"name": "main", "image": "i"}]},
        },
    )
    return await running(scene, created)
