"""A node process whose cards fall ill, and a kubelet that follows their health."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from dragoon.gpu.sim.hardware import Hardware
from dragoon.health.reports import DeviceHealth, Report, State
from dragoon.kube.port import Object
from dragoon.kubelet.client import open_channel, watch_health
from dragoon.kubelet.healthstream import HEALTH_VERSIONS
from dragoon.kubelet.standin import KubeletStandIn
from tests.scenario.pluginbed import DRIVER, Bed

FIRST = "gpu-0000-11-00-0"
SECOND = "gpu-0000-13-00-0"


def hardware(bed: Bed) -> Hardware:
    return Hardware(bed.root / "gpus.json")


def taints(slices: tuple[Object, ...]) -> dict[str, dict[str, Any]]:
    """The taints of each device that has some, by key."""
    return {
        device["name"]: {taint["key"]: taint for taint in device["taints"]}
        for slice_ in slices
        for device in slice_["spec"].get("devices") or ()
        if device.get("taints")
    }


class Follower:
    """A kubelet that follows the health of devices."""

    def __init__(self) -> None:
        self.devices: dict[str, DeviceHealth] = {}

    async def follow(self, service: Path) -> None:
        async with (
            open_channel(service) as channel,
            aclosing(watch_health(channel, HEALTH_VERSIONS[0])) as reports,
        ):
            async for report in reports:
                self.take(report)

    def take(self, report: Report) -> None:
        self.devices = {device.device: device for device in report.devices}

    def says(self, state: State) -> set[str]:
        return {name for name, device in self.devices.items() if device.state is state}


@asynccontextmanager
async def following(kubelet: KubeletStandIn) -> AsyncIterator[Follower]:
    follower = Follower()
    task = asyncio.create_task(follower.follow(kubelet.calls_go_to(DRIVER)))
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.wait({task})


def have(*expected: tuple[str, str]) -> Callable[[tuple[Object, ...]], bool]:
    """Whether exactly these devices have exactly one taint, with that key."""

    def wanted(slices: tuple[Object, ...]) -> bool:
        found = {(name, key) for name, keys in taints(slices).items() for key in keys}
        return bool(slices) and found == set(expected)

    return wanted
