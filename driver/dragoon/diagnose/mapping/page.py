"""The map as one HTML page that works from a file, without a network."""

import html
import json
from base64 import b64encode
from hashlib import sha256
from importlib import resources
from string import Template
from typing import Any, Final

from dragoon.api.visible import visible
from dragoon.diagnose.mapping.data import as_data
from dragoon.diagnose.mapping.model import ClusterMap, State

_ESCAPES: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&'\u2028\u2029"})
"""JSON that can stand in a script element: nothing in it ends the element or opens another."""


def page(found: ClusterMap) -> str:
    """The page.

    It may run its own script and style only, and load nothing (its own CSP says so).
    """
    style, script = _file("page.css"), _file("page.js")
    total, free = sum(found.counts.values()), found.counts.get(State.FREE, 0)
    return Template(_file("page.html")).substitute(
        style_hash=_hash(style),
        script_hash=_hash(script),
        style=style,
        script=script,
        source=html.escape(visible(found.source)),
        summary=f"{_counted(len(found.nodes), 'node')}, {_counted(total, 'GPU')}, {free} free",
        data=json.dumps(_shown(as_data(found)), separators=(",", ":")).translate(_ESCAPES),
    )


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _file(name: str) -> str:
    return (resources.files(__package__) / name).read_text("utf-8")


def _hash(content: str) -> str:
    """As CSP wants it for an inline element."""
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def _shown(value: Any) -> Any:
    """The data with every text made visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): _shown(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return value
