"""What the bytes of an API server say: objects, watch events, refusals."""

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Final

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import ApiError, ApiUnavailableError
from dragoon.kube.mending import mended
from dragoon.kube.port import Object, WatchEvent
from dragoon.kube.statuses import error_for, message_of, shortened
from dragoon.kube.transport import Request

SOMEBODY_ELSE: Final = "check that the address is an API server's, not a proxy's"
"""The hint for whatever no API server answers."""


class _Metadata(msgspec.Struct):
    """What every stored object says of itself (meta/v1 ObjectMeta); other fields are anything."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    uid: str
    resourceVersion: str  # noqa: N815 - as the API calls it
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[dict[str, Any]] | None = None  # noqa: N815
    finalizers: list[str] | None = None


class _Object(msgspec.Struct):
    """Any object; of a Status, `status` is text."""

    kind: str
    metadata: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | str | None = None


class _Item(msgspec.Struct):
    """A stored object in a list, which leaves its kind out."""

    metadata: _Metadata
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class _List(msgspec.Struct):
    """A list; Go writes null for an empty one."""

    kind: Annotated[str, msgspec.Meta(pattern="List$")]
    metadata: dict[str, Any] | None = None
    items: list[_Item] | None = None


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


def typed(raw: bytes, what: str, sent: Mapping[str, Any] | None = None) -> Object:
    """The same of an object that has a kind, as all have but the version. Raises ApiError.

    sent: the object that was written, whose metadata and spec an API server answers with.
    """
    found = decoded(raw, what)
    _check(found, _Object, raw, what)
    for part in ("metadata", "spec"):
        if (sent or {}).get(part) and found.get(part) is None:
            raise _foreign(raw, what, f"{part} is missing")
    return found


def version(raw: bytes, what: str) -> str:
    """What an API server calls itself, the one answer without a kind. Raises ApiError."""
    found = decoded(raw, what).get("gitVersion")
    if not isinstance(found, str):
        raise _foreign(raw, what)
    return found


def listing(raw: bytes, what: str) -> tuple[list[Object], Mapping[str, Any]]:
    """The items of a list, and its metadata. Raises ApiError, also where it is no list."""
    found = decoded(raw, what)
    _check(found, _List, raw, what)
    return found.get("items") or [], found.get("metadata") or {}


def _check(found: Object, layout: type[msgspec.Struct], raw: bytes, what: str) -> None:
    """Raises ApiUnavailableError, naming the field: whoever reads objects relies on their types."""
    try:
        msgspec.convert(found, layout)
    except msgspec.ValidationError as error:
        raise _foreign(raw, what, str(error)) from error


def _foreign(raw: bytes, what: str, why: str = "") -> ApiUnavailableError:
    """Read as an object, it would be one without anything in it: an empty cluster."""
    seen = shortened(raw[:2000].decode("utf-8", "replace"), 200)
    told = f"{why}: {seen}" if why else seen
    return ApiUnavailableError(
        f"{what}: the answer is no object of Kubernetes: {told}", hint=SOMEBODY_ELSE
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
