"""Waiting for a condition that nobody announces."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LOOK_SECONDS = 0.05


class NotInTimeError(AssertionError):
    """What was waited for did not come true."""


def until(what: str, look: Callable[[], T | None], *, within: float = 60.0) -> T:
    """What `look` answers, as soon as it is something; fails with `what` after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise NotInTimeError(f"not within {within:g} s: {what} (last: {found!r})")
        time.sleep(_LOOK_SECONDS)
