"""Text from users made safe to show: what a terminal or a reader would obey becomes visible.

Kubernetes checks names and labels, but messages, expressions and annotations can hold escape
sequences, line breaks and marks that turn the direction of text.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Final

_BREAK: Final = "\\t-\\r\\x85\\u2028\\u2029"
_OTHER: Final = (
    # C0 and C1 controls, invisible and direction marks (Unicode TR 36), lone surrogates.
    "\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u202a-\\u202e"
    "\\u2060-\\u206f\\ud800-\\udfff\\ufeff\\ufff9-\\ufffb\\U000e0000-\\U000e007f"
)
OBEYED: Final = re.compile(f"[{_BREAK}{_OTHER}]")
"""Every character that is not one to see, line breaks among them."""
_BREAKS: Final = re.compile(f"[{_BREAK}]+")
REPLACEMENT: Final = "\ufffd"


def visible(text: str) -> str:
    """The text with a replacement mark for each character that is not one to see."""
    return OBEYED.sub(REPLACEMENT, text)


def one_line(text: str) -> str:
    """The text in one line: breaks become blanks, what else is obeyed becomes a mark."""
    return visible(_BREAKS.sub(" ", text)) if OBEYED.search(text) else text


def typed(command: str | Sequence[str]) -> str:
    """A command to type, with the words quoted in which a shell would see more than a word.

    command: its words, or all of them in one text where none has a blank in it. Names in it may be
    anybody's: a saved cluster is a file.
    """
    words = command.split() if isinstance(command, str) else command
    return " ".join(map(shlex.quote, words))
