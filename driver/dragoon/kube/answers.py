"""What the bytes of an API server say: objects, watch events, refusals."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import ApiError, ApiUnavailableError
from dragoon.kube.mending import mended
from dragoon.kube.port import Object, WatchEvent
from dragoon.kube.statuses import error_for, message_of, shortened
from dragoon.kube.transport import Request


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream. One line may be larger than any buffer of the transport."""
    parts: list[bytes] = []
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            whole = b"".join((*parts, line))
            parts.clear()
            if whole.strip():
                yield whole
        if rest:
            parts.append(rest)


def event(line: bytes, what: str) -> WatchEvent:
    """One line of a watch. Raises ApiError, also where the line tells one."""
    told = decoded(line, what)
    found, kind = told.get("object"), told.get("type")
    if not isinstance(found, dict) or not isinstance(kind, str):
        raise ApiUnavailableError(f"{what}: not a watch event: {_complaint(line)}")
    if kind == "ERROR":
        raise error_for(int(found.get("code") or 500), f"{what}: {message_of(found)}")
    return WatchEvent(kind=kind, object=found)


def decoded(raw: bytes, what: str) -> Object:
    """An object, without what no decoder reads (`mending`).

    what: was asked, for the message of the ApiError.
    """
    try:
        found = _json(raw)
    except msgspec.DecodeError as error:
        raise ApiUnavailableError(
            f"{what}: the answer is not JSON: {shortened(str(error), 200)}",
            hint="check that the address is an API server's, not a proxy's",
        ) from error
    if not isinstance(found, dict):
        raise ApiError(f"{what}: the answer is a JSON {type(found).__name__}, not an object")
    return found


def refusal(request: Request, status: int, raw: bytes) -> ApiError:
    """The error that an answer of that status is."""
    return error_for(status, f"{request}: {_complaint(raw)}")


def _complaint(raw: bytes) -> str:
    """What the body of an error says: the message of a Status, else the start of the text."""
    try:
        status = _json(raw)
    except msgspec.DecodeError:
        return shortened(raw[:2000].decode("utf-8", "replace"), 200)
    return message_of(status) if isinstance(status, dict) else shortened(str(status), 200)


def _json(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except UNDECODABLE:
        return msgspec.json.decode(mended(raw))
