"""`dragoon controller`: the controller on the API server that its settings mean."""

from pathlib import Path

from dragoon.app.controller import Controller
from dragoon.app.controller_config import ControllerConfig
from dragoon.app.heap import settle_heap
from dragoon.app.stopping import stop_signal
from dragoon.kube.connecting import connect


async def serve(config: ControllerConfig) -> None:
    """The controller from its settings until SIGTERM or SIGINT."""
    stop = stop_signal()
    api = await connect(Path(config.kubeconfig) if config.kubeconfig else None)
    try:
        await Controller(config, api=api, listed=settle_heap).run(stop)
    finally:
        await api.close()
