"""An HTTP server that answers what a test says, to see and to break what goes over the wire."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Wire:
    """The server's address, and every request it got with its body."""

    url: str = ""
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)


@contextlib.asynccontextmanager
async def wire(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Wire]:
    found = Wire()

    async def handle(request: web.Request) -> web.StreamResponse:
        found.requests.append(request)
        found.bodies.append(await request.text())
        return await answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    found.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield found
    finally:
        await runner.cleanup()


def answering(body: Any, status: int = 200) -> Answer:
    """Always the same: JSON, or plain text where a string is given."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        if isinstance(body, str):
            return web.Response(text=body, status=status)
        return web.json_response(body, status=status)

    return answer


def streaming(*chunks: bytes) -> Answer:
    """The chunks one by one, then the end of the stream."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        return response

    return answer
