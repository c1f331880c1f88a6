"""How the kubelet stand-in finds plugins: registration sockets in, connections to services out.

As in Kubernetes 1.37.2: every visible socket in the folder is asked and notified, a failure is
tried again after 0.5, 1, 2, 4 s; a socket that is removed or replaced ends its registration.
Here the folder is looked at every 0.1 s; the kubelet is told by inotify and acts once a second.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from stat import S_ISSOCK

import structlog
from grpc.aio import Channel

from dragoon.errors import KubeletError
from dragoon.kubelet.client import DraClient, PluginInfo, get_info, notify, open_channel
from dragoon.kubelet.messages import PLUGIN_TYPE, DraVersion
from dragoon.kubelet.sockets import make_folder

_log = structlog.get_logger(__name__)

_LOOK_SECONDS = 0.1
_CONNECT_SECONDS = 0.02
_RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0)

_Identity = tuple[int, int, int]
"""Device, inode and time of creation: a new file may have the inode of a removed one."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A registered instance of a driver, and the connection to its service."""

    driver: str
    client: DraClient


class PluginWatch:
    """The instances registered through one folder, in the order of their registration."""

    def __init__(
        self, folder: Path, versions: Sequence[DraVersion], *, notify_seconds: float
    ) -> None:
        self._folder = folder
        self._notify_seconds = notify_seconds
        self._versions = {version.advertised: version for version in versions}
        self._instances: list[Instance] = []

    async def run(self) -> None:
        """Follows the folder until it is cancelled, then hangs up everywhere."""
        make_folder(self._folder)
        followed: dict[Path, tuple[_Identity, asyncio.Task[None]]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                found = _sockets(self._folder)
                for path, (identity, task) in list(followed.items()):
                    if found.get(path) != identity:
                        task.cancel()
                        del followed[path]
                for path, identity in found.items():
                    if path not in followed:
                        followed[path] = (identity, group.create_task(self._follow(path)))
                await asyncio.sleep(_LOOK_SECONDS)

    async def wait_registered(
        self, driver: str, wanted: Callable[[Path], bool] = lambda _service: True
    ) -> None:
        """Returns when an instance is connected, and the service socket to call is one wanted."""
        # gRPC's own way to wait for a connection cannot be cancelled.
        while not (  # noqa: ASYNC110
            (found := self._connected(driver)) and wanted(found[-1].client.endpoint)
        ):
            await asyncio.sleep(_CONNECT_SECONDS)

    def pick(self, driver: str) -> DraClient:
        """The instance to call: the newest that is connected, else the newest.

        Raises KubeletError when there is none.
        """
        instances = self._of(driver)
        if not instances:
            raise KubeletError(f"DRA driver {driver} is not registered", retryable=True)
        return (self._connected(driver) or instances)[-1].client

    def _of(self, driver: str) -> list[Instance]:
        return [instance for instance in self._instances if instance.driver == driver]

    def _connected(self, driver: str) -> list[Instance]:
        return [instance for instance in self._of(driver) if instance.client.connected()]

    async def _follow(self, path: Path) -> None:
        """The life of one registration socket; cancelled when the socket is gone."""
        for pause in chain(_RETRY_SECONDS, repeat(_RETRY_SECONDS[-1])):
            try:
                await self._register(path)
            except KubeletError as error:
                _log.warning("cannot register a plugin", socket=str(path), error=str(error))
            await asyncio.sleep(pause)

    async def _register(self, path: Path) -> None:
        """Registers who is at the socket, for as long as this is not cancelled."""
        async with open_channel(path) as channel:
            instance = await self._ask(channel)
            self._instances.append(instance)
            try:
                await notify(channel, timeout=self._notify_seconds)
                await channel.close()
                await asyncio.get_running_loop().create_future()
            finally:
                self._instances.remove(instance)
                await instance.client.close()

    async def _ask(self, channel: Channel) -> Instance:
        """Raises KubeletError for a plugin that cannot be registered, and tells it why."""
        info = await get_info(channel)
        try:
            version = self._choose(info)
        except KubeletError as error:
            await notify(channel, error.message)
            raise
        return Instance(info.name, DraClient(info.endpoint, version))

    def _choose(self, info: PluginInfo) -> DraVersion:
        """The first version of the plugin's list that we know: the order is the plugin's."""
        if info.type != PLUGIN_TYPE:
            raise KubeletError(f"no handler for plugin type {info.type!r}")
        for name in info.versions:
            if name in self._versions:
                return self._versions[name]
        raise KubeletError(
            f"supported_versions: found {', '.join(info.versions) or 'none'}, "
            f"known are {', '.join(self._versions)}"
        )


def _sockets(folder: Path) -> dict[Path, _Identity]:
    found = {}
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if path.name.startswith("."):
                continue
            with suppress(FileNotFoundError):  # removed since it was listed
                status = path.stat()
                if S_ISSOCK(status.st_mode):
                    found[path] = (status.st_dev, status.st_ino, status.st_mtime_ns)
    return found
