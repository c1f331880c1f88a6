"""Everything around the process under test: folders, machine, API server, kubelet, its deaths."""

import asyncio
import hashlib
import multiprocessing
import os
import shutil
import signal
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import msgspec

from chaoscampaign import victim
from chaoscampaign.board import Board, Deed, Kind
from chaoscampaign.kubelet import Kubelet
from chaoscampaign.workload import DRIVER, LIBRARY, NODE, Pod, Scheduler, Wish, wishes
from dragoon.app.config import PluginConfig
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.occupants import Accounting
from dragoon.gpu.sim.profiles import find_machine
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import SLICES, Object
from dragoon.kube.serving import EmbeddedApi
from dragoon.kubelet.sockets import SocketPaths, socket_paths
from dragoon.prepare.paths import Paths
from testbed.waiting import PATIENCE

MACHINE = "gb200-tray-4gpu"
_POLL_S = 0.005
# Imported once, by the process from which every victim is forked.
_PRELOADED = ["chaoscampaign.victim", "dragoon.kube.kubeconfig"]


class NodeError(Exception):
    """The node did not become what it must become; what was waited for."""


class Node:
    """One node with one plugin process at a time. `root` must be short: sockets live below it.

    left_out: see `victim.Order`.
    """

    def __init__(self, root: Path, *, left_out: str = "") -> None:
        self.root = root
        self._left_out = left_out
        self.kubelet_root = root / "k"
        self.cdi_root = root / "cdi"
        self.cgroup_root = root / "cg"
        self.state_folder = self.kubelet_root / "plugins" / DRIVER
        self.hardware = Hardware.installed(root / "gpus.json", find_machine(MACHINE), NODE)
        self.memory = MemoryApi()
        self.api = EmbeddedApi(self.memory)
        self.scheduler = Scheduler(self.memory)
        self.wishes: dict[str, Wish] = wishes(self.hardware.read().machine.cards)
        self.starts = 0
        self.board = Board.fresh(root / "board")
        self.kubelet = Kubelet(root / "nobody")
        self.published: frozenset[str] = frozenset()
        self.durable: dict[Path, bytes] = {}
        self._spawn = multiprocessing.get_context("forkserver")
        self._spawn.set_forkserver_preload(_PRELOADED)
        self._process: ForkServerProcess | None = None

    @property
    def paths(self) -> Paths:
        """Where prepare keeps its files."""
        return Paths(DRIVER, self.state_folder, self.cdi_root, self.cgroup_root)

    @property
    def trace(self) -> Path:
        """What the process did to its files since it was started."""
        return self.root / "trace"

    @property
    def log(self) -> Path:
        """What the processes said."""
        return self.root / "log"

    async def open(self) -> None:
        """Makes the node, and learns what a healthy plugin publishes."""
        self.kubelet_root.mkdir()
        (self.root / "libvgpu.so").write_bytes(LIBRARY)
        (self.root / "libvgpu.so").chmod(0o644)
        (self.cgroup_root / "kubepods").mkdir(parents=True)
        (self.cgroup_root / "cgroup.controllers").write_text("dmem\n")
        self.hardware.set_accounting(Accounting.DMEM)
        await self.scheduler.create_node()
        await self.api.start()
        self.api.write_kubeconfig(self.root / "kubeconfig")
        await self.start(wait=False)
        await self._until("all tiers are published", self._tiers_are_there)
        self.published = _devices(await self.slices())

    async def close(self) -> None:
        """Ends the process and the API server."""
        await self.kill()
        await self.api.stop()

    def launch(self, *, doomed_at: int | None = None) -> SocketPaths:
        """Starts a process on a fresh board; does not wait for it.

        doomed_at: the effect before which it dies, counted from its start.
        """
        self.starts += 1
        instance = str(uuid.UUID(int=self.starts))
        self.board = Board.fresh(self.root / "board")
        if doomed_at is not None:
            self.board[Kind.EFFECTS].arm(Deed.KILL, ahead=doomed_at)
        self.trace.unlink(missing_ok=True)
        self.durable = {
            path: path.read_bytes() for path in self.state_folder.rglob("*") if path.is_file()
        }
        order = victim.Order(
            config=self._config(instance),
            hardware=str(self.hardware.file),
            board=str(self.root / "board"),
            trace=str(self.trace),
            log=str(self.log),
            campaign=os.getpid(),
            left_out=self._left_out,
        )
        self._process = self._spawn.Process(
            target=victim.live, args=(msgspec.json.encode(order),), daemon=True
        )
        self._process.start()
        return socket_paths(self.kubelet_root, DRIVER, instance)

    async def start(self, *, wait: bool = True) -> None:
        """Starts a process and registers it. wait: until its slices are those of a healthy one.

        Raises NodeError when it does not come up.
        """
        sockets = self.launch()
        self.kubelet = Kubelet(sockets.registration)
        meeting = asyncio.create_task(self.kubelet.meet())
        dying = asyncio.create_task(self.death())
        done, _ = await asyncio.wait(
            {meeting, dying}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED
        )
        for task in (meeting, dying):
            task.cancel()
        await asyncio.wait({meeting, dying})
        if meeting not in done:
            raise NodeError(f"the plugin does not come up: {self.last_words()}")
        await meeting
        if wait:
            await self.settled()

    async def settled(self) -> tuple[Object, ...]:
        """The slices of this node, once they are those of a healthy plugin.

        While a pool is written, slices of two generations stand there, of which no allocator takes
        any. Raises NodeError.
        """
        found: tuple[Object, ...] = ()

        async def healthy() -> bool:
            nonlocal found
            found = await self.slices()
            return _is_whole(found) and _devices(found) == self.published

        await self._until("the slices of a healthy plugin", healthy)
        return found

    async def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        if self._process is not None and self.alive:
            self._process.kill()
        await self.kubelet.close()
        await self.death()

    @property
    def alive(self) -> bool:
        """Whether a process runs."""
        return self._process is not None and self._process.exitcode is None

    async def death(self) -> int | None:
        """Waits for the end of the process: its exit code, -9 for SIGKILL. None: there is none."""
        process = self._process
        if process is None:
            return None
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(process.sentinel)
        process.join()
        return process.exitcode

    async def died_of_kill(self) -> bool:
        """Whether the process was killed, not ended by itself."""
        async with asyncio.timeout(PATIENCE):
            return await self.death() == -signal.SIGKILL

    def reboot(self) -> None:
        """The machine goes off and on: instances, caps, cgroups and the CDI folder are gone."""
        self.hardware.reboot()
        shutil.rmtree(self.cdi_root, ignore_errors=True)
        shutil.rmtree(self.cgroup_root / "kubepods")
        (self.cgroup_root / "kubepods").mkdir()

    def make_cgroup(self, pod: Pod) -> None:
        """As the kubelet does, before it asks for devices."""
        folder = self.cgroup_root / "kubepods" / "besteffort" / f"pod{pod.uid}"
        folder.mkdir(parents=True, exist_ok=True)

    def remove_cgroup(self, pod: Pod) -> None:
        """The pod has ended."""
        (self.cgroup_root / "kubepods" / "besteffort" / f"pod{pod.uid}").rmdir()

    async def slices(self) -> tuple[Object, ...]:
        """What is published."""
        return (await self.memory.list(SLICES)).items

    def last_words(self) -> str:
        """The end of the log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return text[-2000:]

    async def _tiers_are_there(self) -> bool:
        names = _devices(await self.slices())
        return all(wish.devices <= names for wish in self.wishes.values())

    async def _until(self, what: str, condition: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not await condition():  # noqa: ASYNC110 - the API in memory tells nobody
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise NodeError(f"not within {PATIENCE:g} s: {what}: {self.last_words()}") from None

    def _config(self, instance: str) -> PluginConfig:
        return PluginConfig(
            node_name=NODE,
            kubelet_root=str(self.kubelet_root),
            cdi_root=str(self.cdi_root),
            proc_root=str(self.hardware.roots.proc),
            cgroup_root=str(self.cgroup_root),
            kubeconfig=str(self.root / "kubeconfig"),
            simulate_state=str(self.hardware.file),
            hami_library=str(self.root / "libvgpu.so"),
            hami_sha256=hashlib.sha256(LIBRARY).hexdigest(),
            allow_unenforced_shares=True,
            forms="whole,shared,mig",
            listen="127.0.0.1:0",
            pod_uid=instance,
        )


def _devices(slices: Iterable[Object]) -> frozenset[str]:
    return frozenset(d["name"] for one in slices for d in one["spec"].get("devices", ()))


def _is_whole(slices: Sequence[Object]) -> bool:
    """Whether all slices of the one pool are of one generation, and all are there."""
    pools = {
        (p["generation"], p["resourceSliceCount"]) for p in (s["spec"]["pool"] for s in slices)
    }
    return len(pools) == 1 and {count for _, count in pools} == {len(slices)}
