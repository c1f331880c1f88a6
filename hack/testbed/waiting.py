"""Waiting for a condition that nobody announces."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 240.0
"""Seconds. They cost nothing where a condition comes true, and a machine may be busy with others."""
_LOOK_SECONDS: Final = 0.05


class NotInTimeError(AssertionError):
    """What was waited for did not come true."""


def settles(look: Callable[[], object], wanted: object) -> None:
    """Returns when `look` answers this; fails with its last answer in the end."""
    deadline = time.monotonic() + PATIENCE
    while (found := look()) != wanted and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    if found != wanted:
        raise NotInTimeError(f"not within {PATIENCE:g} s: {wanted!r} (last: {found!r})")


def until(what: str, look: Callable[[], T | None], *, within: float = PATIENCE) -> T:
    """What `look` answers, as soon as it is something; fails with `what` after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise NotInTimeError(f"not within {within:g} s: {what} (last: {found!r})")
        time.sleep(_LOOK_SECONDS)
