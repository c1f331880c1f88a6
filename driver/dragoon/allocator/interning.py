"""Sharing of equal records, so that 100,000 devices take the memory of their differences."""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

_KEPT: Final = 500_000

Record = TypeVar("Record")


class Interner:
    """One object for equal content.

    Forgets everything when it is full: sharing is a saving only.
    """

    def __init__(self, limit: int = _KEPT) -> None:
        self._limit = limit
        self._known: dict[tuple[str, Hashable], Any] = {}

    def __len__(self) -> int:
        return len(self._known)

    def same(self, value: Record) -> Record:
        """The first object that was equal to this one. Only for immutable, hashable values."""
        return self.made(type(value).__name__, value, lambda: value)

    def made(self, kind: str, key: Hashable, make: Callable[[], Record]) -> Record:
        """The record of this kind for the key, made where it is not known."""
        known = self._known.get((kind, key))
        if known is None:
            if len(self._known) >= self._limit:
                self._known.clear()
            known = self._known[kind, key] = make()
        return known
