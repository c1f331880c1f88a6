"""Semantic versions as Kubernetes reads them: strict SemVer 2.0.0, and CEL's lenient form.

May import nothing but the standard library and dragoon.errors.

Source of the facts: semver.org 2.0.0; k8s.io/apiserver 0.37.2 `pkg/cel/library/semverlib.go` for
the lenient form. Every number fits 64 bits without sign, as it must in Kubernetes.
"""

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import Final

from dragoon.errors import InvalidInputError

_VERSION: Final = re.compile(
    r"(?P<major>0|[1-9][0-9]*)\.(?P<minor>0|[1-9][0-9]*)\.(?P<patch>0|[1-9][0-9]*)"
    r"(?:-(?P<prerelease>[0-9A-Za-z.-]+))?"
    r"(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_IDENTIFIER: Final = re.compile(r"0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*", re.ASCII)
_UINT64_MAX: Final = 2**64 - 1


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """major.minor.patch with optional pre-release identifiers and build metadata.

    Equality and order are SemVer's precedence: a pre-release comes before its release, build
    metadata do not count.
    """

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    def compare(self, other: "Version") -> int:
        """-1, 0 or 1 by precedence."""
        left, right = self.precedence(), other.precedence()
        return (left > right) - (left < right)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self.precedence() == other.precedence()

    def __lt__(self, other: "Version") -> bool:
        return self.precedence() < other.precedence()

    def __hash__(self) -> int:
        return hash(self.precedence())

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def precedence(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        """A key that sorts by precedence: numbers before words, fewer before more identifiers."""
        identifiers = tuple(
            (False, part, "") if isinstance(part, int) else (True, 0, part)
            for part in self.prerelease
        )
        return self.major, self.minor, self.patch, not identifiers, identifiers


@lru_cache(maxsize=1024)
def parse(text: str) -> Version:
    """Reads a strict version such as `580.95.5` or `1.0.0-rc.1+build`.

    All devices of a fleet have a few versions: each is read once. Raises InvalidInputError for anything else, also for leading zeros and for two or four parts.
    """
    found = _VERSION.fullmatch(text)
    if found is None:
        raise _invalid(text)
    words = (found["prerelease"] or "").split(".") if found["prerelease"] else []
    if not all(_IDENTIFIER.fullmatch(word) for word in words):
        raise _invalid(text)
    numbers = [found["major"], found["minor"], found["patch"], *filter(str.isdigit, words)]
    if any(len(number) > 20 or int(number) > _UINT64_MAX for number in numbers):
        raise _invalid(text)
    return Version(
        int(found["major"]),
        int(found["minor"]),
        int(found["patch"]),
        tuple(int(word) if word.isdigit() else word for word in words),
        tuple((found["build"] or "").split(".")) if found["build"] else (),
    )


def parse_lenient(text: str) -> Version:
    """Reads what CEL's `semver(text, true)` reads.

    A leading `v` goes, leading zeros go, a missing minor or patch is 0. Raises InvalidInputError
    for what is no version even then.
    """
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[index] = bare if bare[:1].isdigit() and bare.isascii() else "0" + bare
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise _invalid(text)
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(parts))


def _invalid(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"version: found {text!r}, allowed is major.minor.patch without leading zeros, such as "
        "580.95.5 or 1.0.0-rc.1"
    )
