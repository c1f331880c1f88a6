"""JSON that is nested deeper than anybody reads it. Pure.

What is opaque to Kubernetes, such as the parameters of a claim (10 KiB), may be nested thousands of
levels deep by whoever writes it. An API server stores it and hands it out in its lists; Python 3.11
decodes a thousand levels. So one claim must not keep all others from being read.
"""

import re
from typing import Final

DEEPEST: Final = 100
"""Levels that are kept. Kubernetes' own objects have no more than some tens."""

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


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
