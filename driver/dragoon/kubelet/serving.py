"""The node plugin as the kubelet sees it: two servers, started and stopped in the right order.

Start: the service serves before the registration socket appears. Stop: calls in flight finish,
then the registration socket goes, and the service goes when the kubelet has hung up: it notices
within a second, and a call in that second must not fail. Two instances with
different UIDs run side by side; the kubelet uses the one that registered last.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Self

import structlog

from dragoon.errors import KubeletError
from dragoon.health.reports import Board
from dragoon.kubelet.client import DraClient, get_info, open_channel
from dragoon.kubelet.draplugin import DraPlugin
from dragoon.kubelet.healthstream import HEALTH_VERSIONS, REPEAT_SECONDS, HealthStream
from dragoon.kubelet.messages import DRA_VERSIONS, NOTIFY_SECONDS
from dragoon.kubelet.registration import Registration, RegistrationState
from dragoon.kubelet.sockets import make_folder, remove_stale, socket_paths
from dragoon.kubelet.socketserver import SocketServer
from dragoon.prepare.port import Preparer

_log = structlog.get_logger(__name__)

_HANGUP_POLL_SECONDS = 0.05


class KubeletPlugin:
    """Serves a Preparer to the kubelet of this node; `async with` starts and stops it.

    instance_uid: the pod's UID; a random one where there is no pod.
    check_seconds: how often the sockets are looked at, and put back if somebody removed them.
    drain_seconds: how long a stop waits for calls in flight.
    hangup_seconds: how long the service is kept for a kubelet that has yet to hang up.
    health: what the kubelet is told of devices; without one it is not told that there is a stream.
    health_repeat: after how many seconds it is told the same again.
    """

    def __init__(
        self,
        preparer: Preparer,
        *,
        driver: str,
        kubelet_root: Path,
        instance_uid: str | None = None,
        check_seconds: float = 5.0,
        drain_seconds: float = 20.0,
        hangup_seconds: float = 3.0,
        health: Board | None = None,
        health_repeat: float = REPEAT_SECONDS,
    ) -> None:
        """Raises DragoonError for names that are not allowed or paths that are too long."""
        self.driver = driver
        self._kubelet_root = kubelet_root
        self.paths = socket_paths(kubelet_root, driver, instance_uid or str(uuid.uuid4()))
        self._check_seconds = check_seconds
        self._drain_seconds = drain_seconds
        self._hangup_seconds = hangup_seconds
        self._plugin = DraPlugin(preparer)
        self._health = HealthStream(health, health_repeat) if health else None
        versions = (*DRA_VERSIONS, *(HEALTH_VERSIONS if health else ()))
        self._registration = Registration(
            driver, self.paths.service, [version.advertised for version in versions]
        )
        self._service_server = self._new_service_server()
        self._registration_server = self._new_registration_server()
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def registered(self) -> bool:
        """Whether the kubelet has this instance registered (the rule: kubelet.registration)."""
        return self._registration.state.registered

    @property
    def registration(self) -> RegistrationState:
        """The same with its reason."""
        return self._registration.state

    @property
    def health_streams(self) -> int:
        """How many streams of the health of devices are open."""
        return self._health.open if self._health else 0

    async def wait_registered(self) -> None:
        """Returns when the kubelet has this instance registered."""
        await self._registration.wait_registered()

    def registration_changes(self) -> AsyncGenerator[RegistrationState]:
        """The state now and every newer one, also when a new kubelet registers us again."""
        return self._registration.changes()

    async def start(self) -> None:
        """Serves and offers itself to the kubelet. Raises KubeletError, leaving no socket."""
        self._clean_folders()
        await self._service_server.start()
        try:
            await self._registration_server.start()
        except BaseException:
            await self._service_server.stop()
            raise
        self._watch = asyncio.create_task(self._watch_sockets())
        _log.info("serving the kubelet", registration=str(self.paths.registration))

    async def stop(self) -> None:
        """Ends without failing a call: see the module's text for the order. Idempotent.

        Takes at most drain_seconds and twice hangup_seconds, less than a pod's grace of 30 s.
        """
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})
        await self._drain()
        self._registration.lost("this process stops")
        await self._registration_server.stop()
        await self._wait_hangup()
        await self._service_server.stop(self._hangup_seconds)

    async def repair(self) -> None:
        """Puts back what is missing of our sockets. Raises KubeletError where that is impossible.

        A path that another process has taken in the meantime is left to it.
        """
        outdated: list[SocketServer] = []
        try:
            if not self._service_server.intact():
                fresh = self._new_service_server()
                await fresh.start()
                outdated.append(self._service_server)
                self._service_server = fresh
            if not self._registration_server.intact():
                self._registration.lost("the registration socket was removed or replaced")
                fresh = self._new_registration_server()
                await fresh.start()
                outdated.append(self._registration_server)
                self._registration_server = fresh
        finally:
            for server in outdated:
                _log.warning("put back a missing socket", path=str(server.path))
                await server.stop(self._drain_seconds)

    async def self_call(self) -> None:
        """Calls both sockets as the kubelet does. Raises KubeletError if one does not answer.

        With more patience than the kubelet has: to be slow on a busy node is not to be dead.
        """
        async with open_channel(self.paths.registration) as channel:
            await get_info(channel, timeout=NOTIFY_SECONDS)
        async with DraClient(self.paths.service, DRA_VERSIONS[0]) as client:
            await client.prepare((), timeout=NOTIFY_SECONDS)

    def _new_service_server(self) -> SocketServer:
        health = self._health.handlers() if self._health else ()
        return SocketServer(self.paths.service, (*self._plugin.handlers(), *health))

    def _new_registration_server(self) -> SocketServer:
        return SocketServer(self.paths.registration, self._registration.handlers())

    def _clean_folders(self) -> None:
        if not self._kubelet_root.is_dir():
            raise KubeletError(
                f"kubelet root: {self._kubelet_root} is not a folder",
                hint="set kubeletRoot to the kubelet's --root-dir, and mount it in a container",
            )
        make_folder(self.paths.registration.parent)
        make_folder(self.paths.service.parent)
        remove_stale(self.paths, self.driver)

    async def _watch_sockets(self) -> None:
        complaint = ""
        while True:
            await asyncio.sleep(self._check_seconds)
            try:
                await self.repair()
                complaint = ""
            except Exception as error:  # noqa: BLE001  the next look may find it mended
                if complaint != repr(error):
                    complaint = repr(error)
                    _log.error("cannot put back a missing socket", error=complaint)

    async def _drain(self) -> None:
        """Waits for the calls in flight: the kubelet cuts them off when it forgets us."""
        try:
            await asyncio.wait_for(self._plugin.wait_idle(), self._drain_seconds)
        except TimeoutError:
            _log.warning("calls still in flight", waited_seconds=self._drain_seconds)

    async def _wait_hangup(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._hangup_seconds):
                # Nobody tells us when the last connection closes, so there is no event.
                while self._service_server.has_connections():  # noqa: ASYNC110
                    await asyncio.sleep(_HANGUP_POLL_SECONDS)
