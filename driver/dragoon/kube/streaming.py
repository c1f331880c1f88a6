"""A watch over HTTP: one JSON line for each event, until its time is over or the server stops."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator

import msgspec
from aiohttp import web

from dragoon.errors import ApiError
from dragoon.kube.port import WatchEvent
from dragoon.kube.statuses import status_of

log = logging.getLogger(__name__)


async def stream_events(
    request: web.Request,
    events: AsyncGenerator[WatchEvent, None],
    seconds: float,
    stopping: asyncio.Event,
) -> web.StreamResponse:
    """Answers with the events as they come, for so many seconds at most, or until the event."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    waiting = asyncio.create_task(stopping.wait())
    sending = asyncio.create_task(_send(events, response))
    try:
        await asyncio.wait({waiting, sending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        sending.cancel()
        _, failure = await asyncio.gather(waiting, sending, return_exceptions=True)
    if isinstance(failure, Exception) and not isinstance(failure, ConnectionError):
        log.error("%s failed", request.path, exc_info=failure)
    return response


async def _send(events: AsyncGenerator[WatchEvent, None], response: web.StreamResponse) -> None:
    """Writes the events; an error becomes the stream's last event, as the API server does it."""
    async with contextlib.aclosing(events):
        try:
            async for event in events:
                await response.write(_line(event))
        except ApiError as error:
            await response.write(_line(WatchEvent("ERROR", status_of(error))))


def _line(event: WatchEvent) -> bytes:
    return msgspec.json.encode({"type": event.kind, "object": event.object}) + b"\n"
