"""The kubelet of the node: registers the plugin at once, and calls it over its real socket."""

import asyncio
from pathlib import Path

from dragoon.api.claims import ClaimRef
from dragoon.errors import KubeletError
from dragoon.kubelet.client import ClaimAnswer, DraClient, get_info, notify, open_channel
from dragoon.kubelet.messages import DRA_VERSIONS

_POLL_S = 0.005


class Kubelet:
    """One connection to one plugin process."""

    def __init__(self, registration: Path) -> None:
        self._registration = registration
        self._client: DraClient | None = None

    async def meet(self) -> None:
        """Waits for the registration socket, asks who is there, and notifies. May be repeated.

        As the kubelet does, it tries again where it gets no answer within a second.
        """
        await self.close()
        while not await self._registered():  # noqa: ASYNC110 - sockets are announced by nobody
            await asyncio.sleep(_POLL_S)

    async def prepare(self, claim: ClaimRef, *, timeout: float = 45.0) -> ClaimAnswer:
        """One claim. Raises KubeletError when the call as a whole fails."""
        return (await self._connected.prepare([claim], timeout=timeout))[claim.uid]

    async def unprepare(self, claim: ClaimRef, *, timeout: float = 45.0) -> ClaimAnswer:
        """One claim. Raises KubeletError when the call as a whole fails."""
        return (await self._connected.unprepare([claim], timeout=timeout))[claim.uid]

    async def close(self) -> None:
        """Hangs up, as a kubelet that dies."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _registered(self) -> bool:
        if not self._registration.exists():
            return False
        try:
            async with open_channel(self._registration) as channel:
                info = await get_info(channel)
                await notify(channel)
        except KubeletError:
            return False
        self._client = DraClient(info.endpoint, DRA_VERSIONS[0])
        return True

    @property
    def _connected(self) -> DraClient:
        if self._client is None:
            raise KubeletError("the plugin is not registered")
        return self._client
