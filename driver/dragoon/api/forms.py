"""The forms in which a GPU can be published, and how people write them."""

import enum
import re
from typing import Final

from dragoon.errors import InvalidInputError


class Form(enum.StrEnum):
    """Whole to one claim, in shares of memory and compute, or divided by MIG."""

    WHOLE = "whole"
    SHARED = "shared"
    MIG = "mig"


DEFAULT: Final = (Form.WHOLE,)

MIB: Final = 1 << 20
SMALLEST_SHARE: Final = 512 * MIB
"""Bytes of memory: the least that holds a CUDA context. Less is not offered, and is refused."""

ALL_PROFILES: Final = "all"
"""In a list of MIG profiles: whatever the card has."""

_SEPARATOR: Final = re.compile(r"[,._-]")


def parse_forms(text: str, field: str) -> tuple[Form, ...]:
    """Reads `whole,shared,mig`; a label has no comma, so `_`, `.` and `-` separate as well.

    Answers them in the order of Form, each once. Raises InvalidInputError, naming the field.
    """
    words = _SEPARATOR.split(text)
    known = {form.value for form in Form}
    if not known.issuperset(words):
        raise InvalidInputError(
            f"{field}: found {text!r}, allowed is a list of {', '.join(Form)}, such as whole,shared"
        )
    return tuple(form for form in Form if form.value in words)


def parse_profiles(text: str) -> frozenset[str]:
    """Reads names of MIG profiles, `1g.10gb+me,1g.20gb`, or `all`. Which exist, cards say."""
    return frozenset(word.strip() for word in text.split(",") if word.strip())
