"""Running the plugin and the kubelet stand-in in a test."""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from dragoon.kubelet.client import PluginInfo, get_info, open_channel
from dragoon.kubelet.serving import KubeletPlugin
from dragoon.kubelet.standin import KubeletStandIn
from dragoon.prepare.port import Preparer
from testbed.waiting import PATIENCE

DRIVER = "gpu.dragoon.dev"
UID_A = "04f79e0a-2b1b-4f93-8f5e-7bf1823ab117"
UID_B = "9c1ae7bb-0b5c-4a35-b6b8-6ff6a3b0d2c4"


def plugin(preparer: Preparer, root: Path, **settings: Any) -> KubeletPlugin:
    return KubeletPlugin(preparer, driver=DRIVER, kubelet_root=root, **settings)


@asynccontextmanager
async def kubelet(root: Path, **settings: Any) -> AsyncIterator[KubeletStandIn]:
    """A running stand-in; a second one on the same root is the kubelet after a restart."""
    standin = KubeletStandIn(root, notify_seconds=PATIENCE, **settings)
    life = asyncio.create_task(standin.run())
    try:
        yield standin
    finally:
        life.cancel()
        with suppress(asyncio.CancelledError):
            await life


async def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition that nobody announces; the time-out is the only clock."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def info_at(path: Path) -> PluginInfo:
    """What a registration socket answers."""
    async with open_channel(path) as channel:
        return await get_info(channel, timeout=PATIENCE)


def files(root: Path) -> list[str]:
    """Everything below the root but folders, and the stand-in's checkpoint."""
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if not path.is_dir() and path.name != "dra_manager_state"
    )


def wipe(root: Path) -> None:
    """Removes everything below a kubelet root, as a reset of the node does."""
    for entry in root.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def dead_socket(path: Path) -> Path:
    """A socket file whose server has gone without removing it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
    return path
