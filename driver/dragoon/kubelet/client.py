"""The kubelet's end of both services: for calls to ourselves and for the stand-in."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc

from dragoon.api.claims import ClaimRef
from dragoon.errors import KubeletError
from dragoon.health.reports import Report
from dragoon.kubelet import rpc
from dragoon.kubelet.healthstream import HealthVersion, read_report
from dragoon.kubelet.messages import (
    DRA_CALL_SECONDS,
    GET_INFO_SECONDS,
    NOTIFY_SECONDS,
    REGISTRATION,
    DraVersion,
    read_device,
    write_claims,
)
from dragoon.kubelet.wire import plugin_registration_v1_pb2
from dragoon.prepare.port import PreparedDevice

# Otherwise channels to one path share a connection, also to a server that was replaced there.
_OWN_CONNECTIONS = ("grpc.use_local_subchannel_pool", 1)


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plugin's answer to GetInfo."""

    type: str
    name: str
    endpoint: Path
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """What the plugin says about one claim: its devices, or an error that is not empty."""

    devices: tuple[PreparedDevice, ...] = ()
    error: str = ""


def open_channel(path: Path) -> grpc.aio.Channel:
    """A connection of its own to the server at the path; `async with` closes it."""
    return grpc.aio.insecure_channel(f"unix:{path}", options=(_OWN_CONNECTIONS,))


async def get_info(channel: grpc.aio.Channel, *, timeout: float = GET_INFO_SECONDS) -> PluginInfo:
    """Asks a registration socket who is there. Raises KubeletError, after that time too."""
    info = await _call(
        channel,
        REGISTRATION,
        "GetInfo",
        plugin_registration_v1_pb2.InfoRequest(),
        timeout=timeout,
    )
    return PluginInfo(info.type, info.name, Path(info.endpoint), tuple(info.supported_versions))


async def notify(
    channel: grpc.aio.Channel, error: str = "", *, timeout: float = NOTIFY_SECONDS
) -> None:
    """Tells a plugin that it is registered, or why not. Raises KubeletError."""
    status = plugin_registration_v1_pb2.RegistrationStatus(plugin_registered=not error, error=error)
    await _call(channel, REGISTRATION, "NotifyRegistrationStatus", status, timeout=timeout)


async def watch_health(channel: grpc.aio.Channel, version: HealthVersion) -> AsyncGenerator[Report]:
    """Follows the health of a plugin's devices. Raises KubeletError when the stream breaks."""
    request = version.wire.NodeWatchResourcesRequest()
    call = rpc.stream(channel, version.service, "NodeWatchResources", request)
    try:
        # Not `async for`: that leaves an iterator behind which keeps the connection open.
        while (response := await call.read()) is not grpc.aio.EOF:
            yield read_report(version, response)
    except grpc.aio.AioRpcError as error:
        raise _failed("NodeWatchResources", error) from error
    finally:
        call.cancel()


class DraClient:
    """Calls a plugin's DRA service in one version; `async with` closes the connection."""

    def __init__(self, endpoint: Path, version: DraVersion) -> None:
        self.endpoint = endpoint
        self._version = version
        self._channel = open_channel(endpoint)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hangs up; calls in flight are cancelled at the plugin. Idempotent."""
        await self._channel.close()

    def connected(self) -> bool:
        """Whether the connection stands; asks for one if not."""
        return self._channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY

    async def prepare(
        self, claims: Sequence[ClaimRef], *, timeout: float = DRA_CALL_SECONDS
    ) -> dict[str, ClaimAnswer]:
        """NodePrepareResources: the answers by claim UID. Raises KubeletError for the call."""
        response = await self._claims_call("NodePrepareResources", claims, timeout)
        return {
            uid: ClaimAnswer(tuple(map(read_device, answer.devices)), answer.error)
            for uid, answer in response.claims.items()
        }

    async def unprepare(
        self, claims: Sequence[ClaimRef], *, timeout: float = DRA_CALL_SECONDS
    ) -> dict[str, ClaimAnswer]:
        """NodeUnprepareResources: the answers by claim UID. Raises KubeletError for the call."""
        response = await self._claims_call("NodeUnprepareResources", claims, timeout)
        return {uid: ClaimAnswer(error=answer.error) for uid, answer in response.claims.items()}

    async def _claims_call(self, method: str, claims: Sequence[ClaimRef], timeout: float) -> Any:
        request_class = getattr(self._version.wire, f"{method}Request")
        request = request_class(claims=write_claims(self._version, claims))
        return await _call(self._channel, self._version.service, method, request, timeout=timeout)


async def _call(
    channel: grpc.aio.Channel, service: Any, method: str, request: Any, *, timeout: float
) -> Any:
    try:
        return await rpc.call(channel, service, method, request, timeout=timeout)
    except grpc.aio.AioRpcError as error:
        raise _failed(method, error) from error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # gRPC says so when the channel is closed under a call; nobody cancelled this task.
        raise KubeletError(f"{method}: the connection was closed", retryable=True) from None


def _failed(method: str, error: grpc.aio.AioRpcError) -> KubeletError:
    return KubeletError(f"{method}: {error.code().name}: {error.details()}", retryable=True)
