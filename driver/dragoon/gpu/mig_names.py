"""Names of MIG profiles as drivers give them: `3g.20gb`, `1g.24gb+me.all`, `1g.24gb-me` (case C17).

Which names exist is the card's to say; here is only what every one of them is made of. Pure.
"""

import re
from dataclasses import dataclass
from typing import Self

from dragoon.errors import InvalidInputError

_PART = r"[+-][a-z0-9]+(?:\.[a-z0-9]+)*"
# No leading zeros: a name that is read prints back the same.
_NAME = re.compile(rf"([1-9]\d{{0,2}})g\.([1-9]\d{{0,5}})gb((?:{_PART})*)")
_PARTS = re.compile(_PART)
_WORDS = {"+": "with", "-": "without"}


@dataclass(frozen=True, slots=True, order=True)
class ProfileName:
    """The parts of a name: compute slices, memory in GB, and suffixes with their sign.

    gigabytes is a label: drivers round it each their own way. The size of an instance is what the
    card says of its profile.
    """

    compute: int
    gigabytes: int
    parts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises InvalidInputError for what is not a profile name."""
        found = _NAME.fullmatch(text)
        if found is None:
            raise InvalidInputError(
                f"MIG profile: found {text!r}, allowed: names such as 1g.5gb, 3g.20gb or 1g.24gb+me"
            )
        return cls(int(found[1]), int(found[2]), tuple(_PARTS.findall(found[3])))

    def __str__(self) -> str:
        return f"{self.compute}g.{self.gigabytes}gb{''.join(self.parts)}"

    @property
    def slug(self) -> str:
        """The form used in device names, `1g24gb-with-me--all`: no two names share one.

        A double hyphen stands for a dot in a suffix.
        """
        words = [f"-{_WORDS[part[0]]}-{part[1:].replace('.', '--')}" for part in self.parts]
        return f"{self.compute}g{self.gigabytes}gb{''.join(words)}"
