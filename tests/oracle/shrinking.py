"""Makes a question small that shows a difference."""

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

Path = tuple[str | int, ...]


def shrunk(question: Any, shows: Callable[[Any], bool], *, seconds: float = 30) -> Any:
    """The question with everything left out that is not needed for it to show the same.

    shows: whether a question still shows the difference. Takes at most about that many seconds.
    """
    end = time.monotonic() + seconds
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for path in list(_parts(question)):
            smaller = _without(question, path)
            if smaller is not None and time.monotonic() < end and shows(smaller):
                question, changed = smaller, True
    return question


def _parts(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every part, wholes before what is in them, last elements first so that indices stay."""
    keys = list(value) if isinstance(value, dict) else range(len(value))[::-1]
    for key in keys:
        yield (*path, key)
    for key in keys:
        if isinstance(value[key], dict | list):
            yield from _parts(value[key], (*path, key))


def _without(question: Any, path: Path) -> Any:
    """A copy without the part, None where it is gone already."""
    copy = deepcopy(question)
    container = copy
    try:
        for key in path[:-1]:
            container = container[key]
        del container[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    return copy
