"""Waiting for a file to be replaced, by any process: inotify, through the C library."""

import ctypes
import os
import select
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoon.errors import StateError

_MOVED_TO = 0x80  # IN_MOVED_TO
_BUFFER = 64 * 1024


class Changes:
    """Tells when something was moved into a folder. Open it before looking, then wait.

    A change between opening and waiting is not missed. Raises StateError when the kernel
    refuses, such as for too many watches.
    """

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._descriptor < 0:
            raise _refused(folder)
        if libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MOVED_TO) < 0:
            error = _refused(folder)
            os.close(self._descriptor)
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def wait(self, until: float | None) -> bool:
        """Blocks until a change, or until that moment of time.monotonic: then False."""
        left = None if until is None else max(0.0, until - time.monotonic()) * 1000
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        if not poller.poll(left):
            return False
        os.read(self._descriptor, _BUFFER)
        return True


def _refused(folder: Path) -> StateError:
    return StateError(f"{folder}: cannot be watched: {os.strerror(ctypes.get_errno())}")
