"""What the bytes of an API server say: objects, watch events, refusals."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import ApiError, ApiUnavailableError
from dragoon.kube.mending import mended
from dragoon.kube.port import Object, WatchEvent
from dragoon.kube.statuses import error_for, message_of, shortened
from dragoon.kube.transport import Request

SOMEBODY_ELSE: Final = "check that the address is an API server's, not a proxy's"
"""The hint for whatever no API server answers."""


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
    """A JSON object, without what no decoder reads (`mending`).

    what: was asked, for the message of the ApiError.
    """
    try:
        found = _json(raw)
    except msgspec.DecodeError as error:
        raise ApiUnavailableError(
            f"{what}: the answer is not JSON: {shortened(str(error), 200)}", hint=SOMEBODY_ELSE
        ) from error
    if not isinstance(found, dict):
        raise _foreign(raw, what)
    return found


def typed(raw: bytes, what: str) -> Object:
    """The same of an object that has a kind, as all have but the version. Raises ApiError."""
    found = decoded(raw, what)
    metadata = found.get("metadata")
    if not isinstance(found.get("kind"), str) or not isinstance(metadata, dict | None):
        raise _foreign(raw, what)
    return found


def version(raw: bytes, what: str) -> str:
    """What an API server calls itself, the one answer without a kind. Raises ApiError."""
    found = decoded(raw, what).get("gitVersion")
    if not isinstance(found, str):
        raise _foreign(raw, what)
    return found


def listing(raw: bytes, what: str) -> tuple[list[Object], Mapping[str, Any]]:
    """The items of a list, and its metadata. Raises ApiError, also where it is no list."""
    found = typed(raw, what)
    items = found.get("items") or []
    is_list = found["kind"].endswith("List") and isinstance(items, list)
    if not is_list or not all(_is_object(one) for one in items):
        raise _foreign(raw, what)
    return items, found.get("metadata") or {}


def _is_object(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("metadata"), dict)


def _foreign(raw: bytes, what: str) -> ApiUnavailableError:
    """Read as an object, it would be one without anything in it: an empty cluster."""
    seen = shortened(raw[:2000].decode("utf-8", "replace"), 200)
    return ApiUnavailableError(
        f"{what}: the answer is no object of Kubernetes: {seen}", hint=SOMEBODY_ELSE
    )


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
