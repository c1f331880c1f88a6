"""Status objects of the API server and the errors of Dragoon, translated both ways.

Source: the `Status` kind of apimachinery's meta/v1 (codes and reasons).
"""

from collections.abc import Mapping
from typing import Any

from dragoon.errors import (
    ApiConflictError,
    ApiError,
    ApiForbiddenError,
    ApiGoneError,
    ApiInvalidError,
    ApiNotFoundError,
    ApiUnavailableError,
)
from dragoon.kube.port import Object

_MESSAGE_LIMIT = 800
_HINTS = {
    401: "the credentials were refused: check the token or the client certificate",
    429: "the API server asks for fewer calls: they are made again later",
}
_KINDS: dict[int, type[ApiError]] = {
    400: ApiInvalidError,
    401: ApiForbiddenError,
    403: ApiForbiddenError,
    404: ApiNotFoundError,
    405: ApiInvalidError,
    408: ApiUnavailableError,
    409: ApiConflictError,
    410: ApiGoneError,
    413: ApiInvalidError,
    415: ApiInvalidError,
    422: ApiInvalidError,
    429: ApiUnavailableError,
}
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_CODES: dict[type[ApiError], int] = {
    ApiConflictError: 409,
    ApiForbiddenError: 403,
    ApiGoneError: 410,
    ApiInvalidError: 422,
    ApiNotFoundError: 404,
    ApiUnavailableError: 503,
}


def error_for(code: int, message: str) -> ApiError:
    """The error for an HTTP status, with `status` set and the message cut to a sane length."""
    kind = _KINDS.get(code, ApiUnavailableError if code >= 500 else ApiError)
    return kind(shortened(message), status=code, hint=_HINTS.get(code))


def message_of(status: Mapping[str, Any]) -> str:
    """What a Status says: its message, or its reason where it has none."""
    return str(status.get("message") or status.get("reason") or "no message")


def status_of(error: ApiError) -> Object:
    """The Status object a server answers for this error."""
    code = error.status or _CODES.get(type(error), 500)
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": _REASONS.get(code, "Unknown"),
        "code": code,
    }


def shortened(text: str, limit: int = _MESSAGE_LIMIT) -> str:
    """The text, cut where it is longer than `limit` characters: servers echo whole payloads."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"
