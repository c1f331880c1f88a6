"""Files by their descriptors: shorter than Python's own, and careful with what a container made."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHUNK = 65536


def all_of(descriptor: int) -> bytes:
    """What is in a file from here to its end."""
    parts = []
    while part := os.read(descriptor, _CHUNK):
        parts.append(part)
    return b"".join(parts)


class Opened:
    """A descriptor for a block. A class, for `contextmanager` takes four times as long."""

    __slots__ = ("_descriptor", "_flags", "_mode", "_path")

    def __init__(self, path: Path, flags: int, mode: int = 0) -> None:
        self._path = path
        self._flags = flags | os.O_CLOEXEC
        self._mode = mode

    def __enter__(self) -> int:
        self._descriptor = os.open(self._path, self._flags, self._mode)
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


@contextmanager
def opened_regular(path: Path, flags: int) -> Iterator[int | None]:
    """Opens a file only once it is known to be a regular one: opening a device or a pipe acts.

    O_PATH opens the name alone; what it stands for is opened through it and cannot be swapped.
    """
    try:
        named = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        if stat.S_ISREG(os.fstat(named).st_mode):
            with Opened(Path(f"/proc/self/fd/{named}"), flags) as descriptor:
                yield descriptor
        else:
            yield None
    finally:
        os.close(named)
