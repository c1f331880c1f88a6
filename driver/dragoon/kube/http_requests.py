"""What a request to the embedded API server says; what makes no sense is ApiInvalidError."""

from typing import Any, Final

import msgspec
from aiohttp import web

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import ApiInvalidError
from dragoon.kube.port import Object, PatchKind
from dragoon.kube.selecting import parsed_fields

_PATCHES: Final = {kind.value: kind for kind in PatchKind}


async def json_of(request: web.Request) -> Any:
    """The body as JSON; an empty one is an object."""
    raw = await request.read()
    try:
        return msgspec.json.decode(raw) if raw else {}
    except UNDECODABLE as error:
        raise ApiInvalidError(f"the body is not JSON: {error}", status=400) from error


async def body_of(request: web.Request) -> Object:
    """The body, which has to be an object."""
    found = await json_of(request)
    if not isinstance(found, dict):
        raise ApiInvalidError("the body must be an object", status=400)
    return found


def check_same(body: Object, name: str, namespace: str | None) -> None:
    """Checks that the body is of the object that the URL names."""
    meta = body.get("metadata") or {}
    if meta.get("name") != name or (namespace and meta.get("namespace") != namespace):
        raise ApiInvalidError("the name in the body differs from the one in the URL", status=400)


def patch_kind(request: web.Request) -> PatchKind:
    """How the body of a patch is meant."""
    kind = _PATCHES.get(request.content_type)
    if kind is None:
        raise ApiInvalidError(
            f"Content-Type: found {request.content_type!r}, allowed: {', '.join(_PATCHES)}",
            status=415,
        )
    return kind


def selectors_of(request: web.Request) -> dict[str, Any]:
    """Which objects of a list or watch are meant, as keywords of `kube.port.Api`."""
    return {
        "fields": parsed_fields(request.query.get("fieldSelector", "")),
        "labels": request.query.get("labelSelector"),
    }


def number_of(request: web.Request, name: str, default: float) -> float:
    """A query parameter that counts; absent and 0 mean the default."""
    given = request.query.get(name) or "0"
    try:
        return float(given) or default
    except ValueError as error:
        raise ApiInvalidError(f"{name}: found {given!r}, it is a number", status=400) from error
