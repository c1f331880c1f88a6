"""Text from users made safe to show: what a terminal or a reader would obey becomes visible.

Kubernetes checks names and labels, but messages, expressions and annotations can hold escape
sequences, line breaks and marks that turn the direction of text.
"""

import unicodedata
from typing import Final

_REPLACEMENT: Final = "\ufffd"
_HIDDEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode's general categories of control, format, surrogate, private, unassigned, separators."""


def visible(text: str, *, keep: str = "") -> str:
    """The text with a replacement mark for each character that is not one to see.

    keep: characters that stay as they are, such as a line break.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char in keep or unicodedata.category(char) not in _HIDDEN else _REPLACEMENT
        for char in text
    )
