"""A page of memory that the campaign shares with the process under test, and that outlives it.

The process counts the points that it passes; the campaign says at which one what is to happen.
"""

import ctypes
import enum
import mmap
import os
import signal
import threading
import time
from pathlib import Path
from typing import Self


class Deed(enum.IntEnum):
    """What happens at a point."""

    NOTHING = 0
    KILL = 1  # SIGKILL before it
    TEAR = 2  # half of it is done, then SIGKILL
    FAIL = 3  # it fails
    FAIL_ON = 4  # it and every later one fails
    HANG = 5  # it waits until the board is disarmed


class Kind(enum.IntEnum):
    """Which points are counted together."""

    EFFECTS = 0
    DRIVER_CALLS = 1


class _Layout(ctypes.Structure):
    _fields_ = (
        ("passed", ctypes.c_int64),
        ("target", ctypes.c_int64),
        ("deed", ctypes.c_int64),
        ("code", ctypes.c_int64),
        ("reached", ctypes.c_int64),
    )


_BYTES = ctypes.sizeof(_Layout) * len(Kind)
_HANG_POLL_S = 0.005


class Channel:
    """One counter of points."""

    def __init__(self, memory: mmap.mmap, offset: int) -> None:
        self._cells = _Layout.from_buffer(memory, offset)
        self._lock = threading.Lock()

    @property
    def passed(self) -> int:
        """How many points were passed, or broken at, so far."""
        return int(self._cells.passed)

    @property
    def reached(self) -> bool:
        """Whether the armed point was reached."""
        return bool(self._cells.reached)

    def arm(self, deed: Deed, *, ahead: int = 0, code: int = 0) -> None:
        """Something happens at the point after so many more; code: of FAIL, an errno or NVML's."""
        self.disarm()
        self._cells.target = self._cells.passed + ahead
        self._cells.code = code
        self._cells.deed = deed

    def disarm(self) -> None:
        """Nothing more happens, and a process that hangs goes on."""
        self._cells.deed = Deed.NOTHING
        self._cells.reached = 0

    def meet(self) -> tuple[Deed, int]:
        """Called by the process at every point. What it must do itself: TEAR, FAIL or nothing."""
        with self._lock:
            number, deed = self._cells.passed, Deed(self._cells.deed)
            self._cells.passed = number + 1
            here = number == self._cells.target
            if deed is Deed.NOTHING or not (here or self._goes_on(deed, number)):
                return Deed.NOTHING, 0
            self._cells.reached = 1
        if deed is Deed.KILL:
            die()
        while self._cells.deed == Deed.HANG:
            time.sleep(_HANG_POLL_S)
        return (Deed.NOTHING, 0) if deed is Deed.HANG else (deed, int(self._cells.code))

    def _goes_on(self, deed: Deed, number: int) -> bool:
        return deed is Deed.FAIL_ON and number > self._cells.target


class Board:
    """The channels of one process. Both sides open the same file."""

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            memory = mmap.mmap(opened.fileno(), _BYTES)
        size = ctypes.sizeof(_Layout)
        self._channels = {kind: Channel(memory, size * kind) for kind in Kind}

    @classmethod
    def fresh(cls, file: Path) -> Self:
        """A new board in a new file: a process that is still dying keeps the old one."""
        file.unlink(missing_ok=True)
        file.write_bytes(bytes(_BYTES))
        return cls(file)

    def __getitem__(self, kind: Kind) -> Channel:
        return self._channels[kind]


def die() -> None:
    """Ends this process as `kill -9` does: nothing of it runs any more."""
    os.kill(os.getpid(), signal.SIGKILL)
