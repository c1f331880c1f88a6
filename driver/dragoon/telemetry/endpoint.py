"""One small HTTP server: /metrics, /healthz, /readyz, /debug/state.

It knows nothing of the parts it reports on: they come as callables. Liveness asks the process to
call itself the way the kubelet does, so that a stuck event loop or a lost socket shows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Self

import msgspec
import structlog
from aiohttp import web

from dragoon.errors import ConfigError, DragoonError
from dragoon.telemetry.metrics import Metrics

_log = structlog.get_logger(__name__)

SELF_CALL_SECONDS: Final = 5.0
"""How long a process that calls itself may take to answer and counts as alive."""


async def always_alive() -> None:
    """The self-call of a process that has nothing to call: answering at all is being alive."""


class Endpoint:
    """The HTTP server of a process; `async with` starts and stops it.

    host None means all addresses, port 0 any free one.
    not_ready: what is still missing for readiness, one short text each; empty means ready.
    self_call: raises DragoonError, or takes longer than self_call_seconds, when the process does
    not serve any more.
    state: what /debug/state shows, as JSON.
    """

    def __init__(
        self,
        host: str | None,
        port: int,
        *,
        metrics: Metrics,
        not_ready: Callable[[], Sequence[str]],
        self_call: Callable[[], Awaitable[None]] = always_alive,
        self_call_seconds: float = SELF_CALL_SECONDS,
        state: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._host = host
        self._wanted_port = port
        self._metrics = metrics
        self._not_ready = not_ready
        self._self_call = self_call
        self._self_call_seconds = self_call_seconds
        self._state = state
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """The port it listens on, also when 0 was asked for. Raises RuntimeError before start."""
        if self._runner is None or not self._runner.addresses:
            raise RuntimeError("the endpoint is not started")
        port: int = self._runner.addresses[0][1]
        return port

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._serve_metrics),
                web.get("/healthz", self._serve_health),
                web.get("/readyz", self._serve_readiness),
                web.get("/debug/state", self._serve_state),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._wanted_port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigError(
                f"listen: cannot listen on {self._host or '*'}:{self._wanted_port}: "
                f"{error.strerror or error}",
                hint="choose another address with --listen",
            ) from error
        _log.info("endpoint listens", port=self.port)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve_metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), content_type="text/plain", charset="utf-8")

    async def _serve_health(self, _request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(self._self_call_seconds):
                await self._self_call()
        except TimeoutError:
            return _text(503, f"no answer from ourselves within {self._self_call_seconds:g} s")
        except DragoonError as error:
            return _text(503, error.message)
        return _text(200, "ok")

    async def _serve_readiness(self, _request: web.Request) -> web.Response:
        missing = self._not_ready()
        return _text(503, "\n".join(missing)) if missing else _text(200, "ok")

    async def _serve_state(self, _request: web.Request) -> web.Response:
        body = msgspec.json.format(msgspec.json.encode(self._state()), indent=2)
        return web.Response(body=body, content_type="application/json")


def _text(status: int, message: str) -> web.Response:
    return web.Response(status=status, text=message + "\n")
