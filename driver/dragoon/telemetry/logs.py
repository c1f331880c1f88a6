"""Structured logs: JSON in pods, key=value on a terminal, one line per event.

`configure` is called once by a process. Everybody else takes `structlog.get_logger(__name__)`
and binds what a line is about (claim UID, operation) with `about`, which follows the asyncio task
through context variables. Lines of libraries that use `logging` come out in the same form.
"""

import json
import logging
import random
import re
import sys
from collections.abc import MutableMapping
from functools import lru_cache, partial
from typing import Any, Final, Literal, TextIO

import msgspec

# isort: split
from dragoon.telemetry import lean_structlog  # noqa: F401 - before structlog

# isort: split
import structlog

from dragoon.api.visible import visible

Format = Literal["auto", "json", "text"]
Level = Literal["debug", "info", "warning", "error"]

HIDDEN: Final = "[hidden]"

_SECRET_KEY = re.compile(r"token|password|passwd|secret|authorization|credential", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    r"(?i)\b(bearer\s+)[\w.~+/=-]+|\b(eyJ[\w-]+\.)[\w.-]+|([?&](?:token|password)=)[^&\s]+"
)
_QUIET_LIBRARIES: Final = ("aiohttp.access", "asyncio", "grpc", "kubernetes", "urllib3")


def configure(
    *, form: Format = "auto", level: Level = "info", stream: TextIO | None = None
) -> None:
    """Sends every log line of this process to `stream` (standard error).

    form: `auto` is text on a terminal and JSON elsewhere. May be called again; the last call holds.
    """
    out = sys.stderr if stream is None else stream
    as_text = form == "text" or (form == "auto" and out.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    rendered: list[structlog.typing.Processor] = [hide_secrets, _text if as_text else _json]
    # Past `logging`, which takes longer for a line than all the rest.
    structlog.configure(
        processors=[*shared, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=partial(_Lines, out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))


class _Lines:
    """Writes finished lines, each at once: other threads write to the same stream."""

    def __init__(self, out: TextIO, name: str = "") -> None:
        self._out = out
        self.name = name

    def msg(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()

    debug = info = warning = error = critical = msg


# The line is made visible in both forms: what users wrote may stand in it.
_logfmt = structlog.processors.LogfmtRenderer(
    key_order=["timestamp", "level", "event"], drop_missing=True, bool_as_flag=False
)


def _text(logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
    return visible(_logfmt(logger, method, event))


def _json(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    try:
        return visible(msgspec.json.encode(event, enc_hook=repr).decode())
    except (TypeError, ValueError):  # such as a file name that is not text
        return json.dumps(event, default=repr)


class about:  # noqa: N801 - reads as the statement that it is
    """Adds fields (claim, claim_uid, ...) to every line logged in this block, in this task.

    A class: structlog's own goes through two generators, at each call of the kubelet.
    """

    __slots__ = ("_fields", "_tokens")

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._tokens = structlog.contextvars.bind_contextvars(**self._fields)

    def __exit__(self, *_: object) -> None:
        structlog.contextvars.reset_contextvars(**self._tokens)


def operation_id() -> str:
    """A short random id that ties together the lines of one operation."""
    return f"{random.getrandbits(32):08x}"


def hide_secrets(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replaces what looks like a credential, by the field's name or by its text."""
    for key, value in event.items():
        if _names_a_secret(key):
            event[key] = HIDDEN
        elif isinstance(value, str) and _may_hold_a_secret(value):
            event[key] = _SECRET_TEXT.sub(_keep_prefix, value)
    return event


def _may_hold_a_secret(text: str) -> bool:
    """Quick, for most texts hold none: what each alternative of the expression begins with."""
    folded = text.lower()
    return any(sign in folded for sign in ("bearer", "eyj", "token=", "password="))


@lru_cache(maxsize=256)
def _names_a_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _keep_prefix(found: re.Match[str]) -> str:
    prefix = next((group for group in found.groups() if group), "")
    return prefix + HIDDEN
