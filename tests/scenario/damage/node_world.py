"""One node that is well: the real plugin, the kubelet's stand-in, real files, simulated cards."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoon.app.evidence import cluster, node
from dragoon.app.patience import DRIVER_SECONDS
from dragoon.app.plugin import Plugin
from dragoon.diagnose.checking import Evidence
from dragoon.gpu.model import MigProfile
from dragoon.gpu.naming import mig_name
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.kubelet.standin import KubeletStandIn
from dragoon.prepare.paths import Paths
from tests.scenario.pluginbed import DRIVER, Bed, until

WHOLE = "gpu-0000-11-00-0"
DIVIDED = 1
"""The slot of the card that is divided."""
VERSION = "575.57.08"
RUNTIME = 'version = 3\n[plugins."io.containerd.cri.v1.runtime"]\nenable_cdi = true\n'


class NodeWorld:
    """The node, and how it is damaged. Two claims are prepared: a whole card and a MIG device."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.hardware = Hardware(bed.root / "gpus.json")
        self.paths = Paths(DRIVER, bed.kubelet_root / "plugins" / DRIVER, bed.cdi_root)
        self.runtime = bed.root / "containerd.toml"
        self.host = bed.root / "host"
        self.settings: dict[str, Any] = {}
        self.patience = DRIVER_SECONDS
        self.plugin: Plugin | None = None
        self._kubelet: KubeletStandIn | None = None
        self._plugin_life = contextlib.AsyncExitStack()
        self._kubelet_life = contextlib.AsyncExitStack()
        self.uids: dict[str, str] = {}

    async def start(self) -> None:
        """Everything runs and two claims are prepared."""
        self.runtime.write_text(RUNTIME + f'cdi_spec_dirs = ["/etc/cdi", "{self.bed.cdi_root}"]\n')
        libraries = self.host / "usr/lib/x86_64-linux-gnu"
        libraries.mkdir(parents=True)
        (libraries / f"libcuda.so.{VERSION}").touch()
        (self.host / "dev").mkdir()
        for name in ("nvidiactl", "nvidia-uvm"):
            (self.host / "dev" / name).touch()
        gpus = self.bed.gpus()
        divided = _a_mig_device(gpus)
        self._kubelet = await self._kubelet_life.enter_async_context(self.bed.kubelet())
        plugin = await self.start_plugin(gpus)
        await until("ready", lambda: not plugin.not_ready())
        for name, device in (("whole", WHOLE), ("divided", divided)):
            claim = await self.bed.allocated_claim(name, device)
            await self._kubelet.prepare(DRIVER, [claim])
            self.uids[name] = claim.uid

    async def start_plugin(self, gpus: NvmlGpus | None = None) -> Plugin:
        """It listens when this returns; whether it is ready is another thing."""
        self.plugin = await self._plugin_life.enter_async_context(
            self.bed.running(gpus, forms="whole,mig", inventory_seconds=1)
        )
        registry = self.bed.kubelet_root / "plugins_registry"
        await until("it serves the kubelet", lambda: any(registry.glob("*-reg.sock")))
        return self.plugin

    async def stop_plugin(self) -> None:
        """As a node whose plugin was deleted: state and claims stay, nobody repairs."""
        self.plugin = None
        await self._plugin_life.aclose()

    async def stop_kubelet(self) -> None:
        await self._kubelet_life.aclose()

    async def stop(self) -> None:
        self.hardware.lift("nvmlDeviceGetCount_v2")  # Lets go of threads that hang in it.
        await self._plugin_life.aclose()
        await self._kubelet_life.aclose()

    async def evidence(self) -> Evidence:
        """What the checks see of it."""
        port = self.plugin.endpoint.port if self.plugin else 0
        values = {
            "listen": f"127.0.0.1:{port}",
            "simulate_state": str(self.hardware.file),
            "driver_root": str(self.host),
            "dev_root": str(self.host / "dev").removesuffix("/dev"),
        }
        config = self.bed.config(**(values | self.settings))
        found = await node.gather(
            Evidence(driver_name=DRIVER), config, self.runtime, patience=self.patience
        )
        # The cards are simulated and need no driver; the files that are looked for are real.
        found = replace(found, driver_files=node.files_below(config, VERSION))
        return await cluster.gather(found, self.bed.memory, source="the test")

    def spec(self, claim: str) -> Path:
        return self.paths.spec(self.uids[claim])

    def journal(self, claim: str) -> Path:
        return self.paths.journal(self.uids[claim])


@contextlib.asynccontextmanager
async def running(bed: Bed) -> AsyncIterator[NodeWorld]:
    world = NodeWorld(bed)
    try:
        await world.start()
        yield world
    finally:
        await world.stop()


def _a_mig_device(gpus: NvmlGpus) -> str:
    """The first placement of the smallest profile of the card that is to be divided."""
    address = gpus.inventory().gpus[DIVIDED].address
    card = gpus.mig.card(address)
    assert card is not None
    smallest: MigProfile = min(card.profiles, key=lambda one: (one.slices, one.name))
    return mig_name(address, smallest, smallest.starts[0])
