"""The Registration service and what the kubelet thinks of us.

The rule of `registered`: true after the kubelet has notified *this process* of success; false at
the start, after a notification of failure, and from the moment our registration socket is gone or
replaced. A kubelet that has died cannot be seen from here (there is no connection of ours to it):
`registered` stays true, and when the kubelet is back its new notification is a new state.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import structlog

from dragoon.kubelet import rpc
from dragoon.kubelet.messages import PLUGIN_TYPE, REGISTRATION
from dragoon.kubelet.wire import plugin_registration_v1_pb2 as wire

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RegistrationState:
    """What the kubelet said last. `reason` says why we are not registered.

    notified counts the notifications of success: each is a kubelet that may have started anew,
    and a kubelet that starts deletes the slices of its node.
    """

    registered: bool
    reason: str
    notified: int


class Registration:
    """Answers who we are and keeps what the kubelet says to it."""

    def __init__(self, driver: str, endpoint: Path, versions: Sequence[str]) -> None:
        self._info = wire.PluginInfo(
            type=PLUGIN_TYPE,
            name=driver,
            endpoint=str(endpoint),
            supported_versions=versions,
        )
        self._state = RegistrationState(
            registered=False, reason="the kubelet has not notified this process yet", notified=0
        )
        self._changed = asyncio.Event()

    @property
    def state(self) -> RegistrationState:
        """What the kubelet said last."""
        return self._state

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """The handlers of the service."""
        behaviours = {"GetInfo": self._get_info, "NotifyRegistrationStatus": self._notify}
        return (rpc.handlers(REGISTRATION, behaviours),)

    async def wait_registered(self) -> None:
        """Returns when the kubelet has us registered."""
        while not self._state.registered:
            await self._changed.wait()

    async def changes(self) -> AsyncGenerator[RegistrationState]:
        """The state now and every newer one; of several at once only the last. Never ends."""
        while True:
            state = self._state
            yield state
            while self._state is state:
                await self._changed.wait()

    def lost(self, reason: str) -> None:
        """Our registration socket is gone: the kubelet forgets us, or already has."""
        if self._state.registered:
            _log.info("not registered with the kubelet any more", reason=reason)
            self._become(registered=False, reason=reason)

    async def _get_info(self, _request: Any, _context: Any) -> Any:
        return self._info

    async def _notify(self, request: Any, _context: Any) -> Any:
        if request.plugin_registered:
            _log.info("registered with the kubelet", endpoint=self._info.endpoint)
            self._become(registered=True, reason="")
        else:
            _log.error("the kubelet refused to register us", error=request.error)
            self._become(registered=False, reason=f"refused by the kubelet: {request.error}")
        return wire.RegistrationStatusResponse()

    def _become(self, *, registered: bool, reason: str) -> None:
        self._state = RegistrationState(registered, reason, self._state.notified + registered)
        # Everybody waiting holds the old event; who comes later waits for the next change.
        self._changed.set()
        self._changed = asyncio.Event()
