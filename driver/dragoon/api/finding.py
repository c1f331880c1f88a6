"""What is wrong with an object: the answer of every check in this package."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the API server would refuse: where, what was found, what is allowed.

    It has a hash whatever was found, objects and lists too.
    """

    path: str
    found: Any = field(hash=False)
    allowed: str

    def __str__(self) -> str:
        return f"{self.path}: found {self.found!r}, allowed is {self.allowed}"
