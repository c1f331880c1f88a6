"""A proxy between one controller and the API server, at which every write can go wrong."""

import asyncio
import enum
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web

from racecampaign.reaching import Reach

_HOST: Final = "127.0.0.1"
_READS: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_HOP: Final = frozenset(("host", "connection", "content-length", "transfer-encoding"))
_CHUNK: Final = 1 << 16
_FAILURES: Final = (409, 429, 500, 503)


class Moment(enum.StrEnum):
    """When the controller dies, seen from one of its writes."""

    BEFORE = "before"
    AFTER = "after"  # it was done, and the controller never hears of it


class Proxy:
    """Listens on the loopback.

    writes: how many writes came so far. error_rate: the part of the writes that fail by chance.
    """

    def __init__(self, kubeconfig: Path, rng: random.Random, kill: Callable[[], None]) -> None:
        self._reach = Reach.of(kubeconfig)
        self._rng = rng
        self._kill = kill
        self._doom: tuple[int, Moment] | None = None
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self.writes = 0
        self.failed = 0
        self.error_rate = 0.0

    async def start(self, kubeconfig: Path) -> None:
        """Listens, and writes a kubeconfig that leads here."""
        app = web.Application(client_max_size=1 << 23)
        app.router.add_route("*", "/{path:.*}", self._on_request)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._reach.tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, _HOST, 0)
        await site.start()
        port = self._runner.addresses[0][1]
        await asyncio.to_thread(self._write, kubeconfig, f"http://{_HOST}:{port}")

    def _write(self, kubeconfig: Path, url: str) -> None:
        own = {"name": "proxy", "cluster": {"server": url}}
        contexts = [
            {**one, "context": {**one["context"], "cluster": "proxy"}}
            for one in self._reach.config["contexts"]
        ]
        config = {**self._reach.config, "clusters": [own], "contexts": contexts}
        kubeconfig.write_text(json.dumps(config), "utf-8")
        kubeconfig.chmod(0o600)

    async def stop(self) -> None:
        """Closes all connections."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    def kill_at(self, ahead: int, moment: Moment) -> None:
        """The controller dies at the write that is `ahead` of now, the next one being 1."""
        self._doom = (self.writes + ahead, moment)

    def disarm(self) -> None:
        self._doom = None

    async def _on_request(self, request: web.Request) -> web.StreamResponse:
        if request.method in _READS:
            return await self._forward(request)
        self.writes += 1
        number = self.writes
        if self._doom is not None and number >= self._doom[0]:
            moment, self._doom = self._doom[1], None
            if moment is Moment.AFTER:
                await self._send(request, await request.read())
            self._kill()
            raise web.HTTPBadGateway
        if self._rng.random() < self.error_rate:
            self.failed += 1
            return _failure(self._rng.choice(_FAILURES))
        return await self._forward(request)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        async with self._request(request, await request.read()) as answer:
            headers = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP}
            response = web.StreamResponse(status=answer.status, headers=headers)
            try:
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            except (ConnectionError, aiohttp.ClientError, asyncio.CancelledError):
                return response  # whoever asked is dead
            return response

    async def _send(self, request: web.Request, body: bytes) -> None:
        async with self._request(request, body) as answer:
            await answer.read()

    def _request(
        self, request: web.Request, body: bytes
    ) -> "aiohttp.client._BaseRequestContextManager[aiohttp.ClientResponse]":
        assert self._session is not None
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        return self._session.request(
            request.method,
            f"{self._reach.server}{request.raw_path}",
            headers=headers,
            data=body or None,
        )


def _failure(code: int) -> web.Response:
    reasons = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reasons.get(code, "ServiceUnavailable"),
        "message": "the campaign lets this write fail",
        "code": code,
    }
    return web.json_response(status, status=code)
