"""JSON that an API server hands out and a strict decoder refuses. Pure.

What is opaque to Kubernetes, such as the parameters of a claim (10 KiB), is stored as somebody wrote
it: with the escape of half a surrogate pair, with bytes that are no UTF-8, nested thousands of
levels deep (Python 3.11 decodes one thousand). One such object in a list must not keep all others
from being read. Tried with an API server of 1.37.2; numbers that no double holds it refuses.
"""

import re
from typing import Final

DEEPEST: Final = 100
"""Levels that are kept. Kubernetes' own objects have no more than some tens."""

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_ESCAPE: Final = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"  # a whole pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # one half
    rb"|\\.",
    re.DOTALL,
)
_HALF: Final = 2
_INSTEAD: Final = rb"\ufffd"


def mended(raw: bytes) -> bytes:
    """The same JSON, with U+FFFD for what is no text, and null for what is too deep.

    What is no JSON stays none.
    """
    text = raw.decode("utf-8", "replace").encode()
    return pruned(
        _ESCAPE.sub(lambda found: _INSTEAD if found.lastindex == _HALF else found[0], text)
    )


def pruned(raw: bytes, deepest: int = DEEPEST) -> bytes:
    """The same JSON, with null for every object and list that is deeper."""
    kept: list[bytes] = []
    depth = begin = 0
    for token in _TOKEN.finditer(raw):
        match token[0]:
            case b"[" | b"{":
                depth += 1
                if depth == deepest + 1:
                    kept += (raw[begin : token.start()], b"null")
            case b"]" | b"}":
                if depth == deepest + 1:
                    begin = token.end()
                depth -= 1
    # One that never ends is left out to the end of the text: then it is no JSON either way.
    return b"".join((*kept, raw[begin:] if depth <= deepest else b""))
