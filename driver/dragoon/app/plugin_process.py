"""`dragoon plugin`: the node process on the GPUs and the API server that its settings mean."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from dragoon.app import hardware
from dragoon.app.config import PluginConfig, check_plugin
from dragoon.app.plugin import Plugin
from dragoon.app.stopping import stop_signal
from dragoon.health.watching import Sources
from dragoon.kube.connecting import connect


async def serve(config: PluginConfig) -> None:
    """The node process from its settings until SIGTERM or SIGINT."""
    check_plugin(config)
    stop = stop_signal()
    async with AsyncExitStack() as stack:
        gpus = hardware.gpus_of(config)
        stack.push_async_callback(asyncio.to_thread, gpus.close)
        api = await connect(Path(config.kubeconfig) if config.kubeconfig else None)
        stack.push_async_callback(api.close)
        plugin = Plugin(
            config,
            gpus=gpus,
            api=api,
            mig=gpus.mig,
            limits=gpus.limits,
            processes=gpus.processes,
            health=Sources(gpus.events, gpus.conditions, gpus.mig),
            proc_root=gpus.roots.proc,
        )
        await plugin.run(stop)
