"""`dragoon plugin` on a node whose disk and API server are slow by a known amount.

    python -m benchmarks.waiting API_MS FSYNC_MS SETTINGS

The waits are put into the plugin's ports: what is measured is whether calls wait side by side,
whatever disk and how many CPUs this machine has. SETTINGS are the plugin's, as JSON.
"""

import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any, cast

from dragoon.app import config, hardware
from dragoon.app.config import PluginConfig
from dragoon.app.plugin import Plugin
from dragoon.app.preparing import host_effects
from dragoon.app.stopping import stop_signal
from dragoon.kube.connecting import connect
from dragoon.kube.port import CLAIMS, Api, Object, Resource
from dragoon.prepare.effects import Effects, HostEffects
from dragoon.telemetry import logs


class SlowDisk:
    """Effects whose syncs take longer."""

    def __init__(self, disk: HostEffects, seconds: float) -> None:
        self._disk = disk
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def sync(self, path: Path) -> None:
        time.sleep(self._seconds)
        self._disk.sync(path)

    def sync_folder(self, path: Path) -> None:
        time.sleep(self._seconds)
        self._disk.sync_folder(path)


class FarApi:
    """An API server that takes longer to answer with a claim."""

    def __init__(self, api: Api, seconds: float) -> None:
        self._api = api
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        if resource is CLAIMS:
            await asyncio.sleep(self._seconds)
        return await self._api.get(resource, name, namespace=namespace)


async def _serve(found: PluginConfig, api_seconds: float, sync_seconds: float) -> None:
    stop = stop_signal()
    async with contextlib.AsyncExitStack() as stack:
        gpus = hardware.gpus_of(found)
        stack.push_async_callback(asyncio.to_thread, gpus.close)
        api = await connect()
        stack.push_async_callback(api.close)
        disk = SlowDisk(host_effects(found, gpus.limits, gpus.mig), sync_seconds)
        plugin = Plugin(
            found,
            gpus=gpus,
            api=cast("Api", FarApi(api, api_seconds)),
            mig=gpus.mig,
            limits=gpus.limits,
            effects=cast("Effects", disk),
        )
        await plugin.run(stop)


def main() -> None:
    api_ms, sync_ms, text = sys.argv[1:]
    found = config.check_plugin(config.load(json.loads(text), {}))
    logs.configure(form=found.log_format, level=found.log_level)
    asyncio.run(_serve(found, float(api_ms) / 1000, float(sync_ms) / 1000))


if __name__ == "__main__":
    main()
