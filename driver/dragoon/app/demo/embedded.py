"""The stage of one machine: a simulated node, the real plugin process, everything else small.

The plugin is the program `dragoon plugin` in a process of its own. It serves real gRPC on Unix
sockets to the kubelet stand-in and speaks HTTP to the embedded API store. The scheduler is the
allocator. All of it lives in one folder, which is removed at the end.
"""

import asyncio
import contextlib
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from dragoon.api import names
from dragoon.api.claims import ClaimRef, claim_ref
from dragoon.app.demo import scheduling
from dragoon.app.demo.process import PluginProcess
from dragoon.app.demo.stage import Answer, Inside, Object
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, CLASSES, NODES, PODS, SLICES
from dragoon.kube.serving import EmbeddedApi
from dragoon.kubelet.standin import KubeletStandIn
from dragoon.prepare.injection import inject
from dragoon.prepare.paths import Paths

NODE: Final = "demo-node"
NAMESPACE: Final = "default"

_STEP_SECONDS: Final = 60.0
# A socket's path has at most 107 bytes, and 89 of them are below the folder for temporary files.
_FOLDER_LIMIT: Final = 18

_Found = TypeVar("_Found")


class EmbeddedStage:
    """Implements `stage.Stage`. Made by `opened`."""

    driver = names.DRIVER_NAME
    device_class = names.CLASS_SIMULATED

    def __init__(self, folder: Path, machine: str, api: EmbeddedApi) -> None:
        self._folder = folder
        self._memory = api.memory
        self._kubelet_root = folder / "k"
        self._cdi_root = folder / "cdi"
        self._paths = Paths(self.driver, folder / "state", self._cdi_root)
        self._kubelet: KubeletStandIn | None = None
        self._kubelet_task: asyncio.Task[None] | None = None
        self._killed: Path | None = None
        kubeconfig = api.write_kubeconfig(folder / "kubeconfig")
        self._plugin = PluginProcess(
            [
                *(sys.executable, "-m", "dragoon", "plugin"),
                *("--node-name", NODE),
                *("--kubeconfig", str(kubeconfig)),
                *("--kubelet-root", str(self._kubelet_root)),
                *("--cdi-root", str(self._cdi_root)),
                *("--state-dir", str(self._paths.state_folder)),
                *("--simulate", machine),
                *("--simulate-state", str(folder / "gpus.json")),
                *("--listen", "127.0.0.1:0"),
            ],
            log=folder / "plugin.log",
        )

    async def open(self) -> None:
        """Puts the node together and waits until it publishes its GPUs."""
        for path in (self._kubelet_root, self._cdi_root):
            path.mkdir()
        await self._memory.create(NODES, _node())
        await self._memory.create(CLASSES, scheduling.simulated_class())
        self._start_kubelet()
        await self._plugin.start()
        await self._ready()

    async def close(self) -> None:
        """Stops the plugin and the kubelet stand-in."""
        # In this order the plugin has nobody to say goodbye to.
        await self._stop_kubelet()
        await self._plugin.stop()

    async def slices(self) -> tuple[Object, ...]:
        return (await self._memory.list(SLICES)).items

    async def ask(self, claim: Object) -> Answer:
        await self._memory.create(CLAIMS, claim)
        name = claim["metadata"]["name"]
        return await scheduling.schedule(self._memory, NODE, NAMESPACE, name)

    async def start_pod(self, claim: str) -> Inside:
        ref = await self._claim(claim)
        await self._memory.create(PODS, _pod(claim))
        await scheduling.reserve(self._memory, NAMESPACE, claim, pod=claim)
        return await self._prepare(ref)

    async def end_pod(self, claim: str) -> None:
        ref = await self._claim(claim)
        await self._memory.delete(PODS, claim, namespace=NAMESPACE)
        await self._step(f"unprepare {claim}", self._live().unprepare(self.driver, [ref]))
        await scheduling.release(self._memory, NAMESPACE, claim)

    async def kill_plugin(self) -> int:
        self._killed = self._live().calls_go_to(self.driver)
        return await self._plugin.kill()

    async def restart_plugin(self) -> None:
        await self._plugin.start()
        await self._ready()

    async def start_again(self, claim: str) -> Inside:
        """After a restart the kubelet asks the plugin again for a new sandbox of the pod."""
        await self._stop_kubelet()
        self._start_kubelet()
        await self._ready()
        return await self._prepare(await self._claim(claim))

    async def _prepare(self, ref: ClaimRef) -> Inside:
        await self._step(f"prepare {ref.name}", self._live().prepare(self.driver, [ref]))
        documents = [path.read_bytes() for path in sorted(self._cdi_root.glob("*.json"))]
        spec = self._paths.spec(ref.uid)
        return Inside(
            inject(documents, self._live().cdi_ids(ref.uid)), spec, spec.read_text("utf-8")
        )

    async def _claim(self, name: str) -> ClaimRef:
        return claim_ref(await self._memory.get(CLAIMS, name, namespace=NAMESPACE))

    async def _ready(self) -> None:
        await self._step("the kubelet registers the plugin", self._registered())
        await self._step("the plugin publishes its GPUs", self._published())

    async def _registered(self) -> None:
        """Returns when the kubelet would call a plugin that was not killed."""
        # That a connection has ended is noticed soon, but nobody tells when.
        await self._live().wait_registered(self.driver, lambda service: service != self._killed)

    async def _published(self) -> None:
        """Returns when the pool of the node is complete."""
        listing = await self._memory.list(SLICES)
        items = {item["metadata"]["name"]: item for item in listing.items}
        stream = self._memory.watch(SLICES, resource_version=listing.resource_version)
        async with contextlib.aclosing(stream):
            while not _complete(list(items.values())):
                event = await anext(stream)
                if event.kind == "DELETED":
                    items.pop(event.object["metadata"]["name"], None)
                elif event.kind != "BOOKMARK":
                    items[event.object["metadata"]["name"]] = event.object

    async def _step(self, what: str, coming: Awaitable[_Found]) -> _Found:
        return await self._plugin.wait_for(what, coming, within=_STEP_SECONDS)

    def _live(self) -> KubeletStandIn:
        assert self._kubelet is not None  # noqa: S101 - open() made it
        return self._kubelet

    def _start_kubelet(self) -> None:
        self._kubelet = KubeletStandIn(self._kubelet_root, api=self._memory, node=NODE)
        self._kubelet_task = asyncio.create_task(self._kubelet.run())

    async def _stop_kubelet(self) -> None:
        if self._kubelet_task is not None:
            self._kubelet_task.cancel()
            await asyncio.gather(self._kubelet_task, return_exceptions=True)
            self._kubelet_task = None


@contextlib.asynccontextmanager
async def opened(machine: str) -> AsyncIterator[EmbeddedStage]:
    """The stage, ready to play; afterwards nothing of it is left."""
    with _folder() as folder:
        api = EmbeddedApi(MemoryApi())
        await api.start()
        stage = EmbeddedStage(folder, machine, api)
        try:
            await stage.open()
            yield stage
        finally:
            await stage.close()
            await api.stop()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder whose path is short enough for sockets, removed at the end."""
    usual = tempfile.gettempdir()
    parent = usual if len(usual) <= _FOLDER_LIMIT else "/tmp"  # noqa: S108 - mkdtemp makes it safe
    folder = Path(tempfile.mkdtemp(prefix="dragoon-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _complete(slices: list[Object]) -> bool:
    return bool(slices) and len(slices) == slices[0]["spec"]["pool"]["resourceSliceCount"]


def _node() -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}


def _pod(claim: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": claim, "namespace": NAMESPACE},
        "spec": {
            "nodeName": NODE,
            "containers": [{"name": "main", "image": "none"}],
            "resourceClaims": [{"name": "gpus", "resourceClaimName": claim}],
        },
        "status": {"phase": "Running"},
    }
