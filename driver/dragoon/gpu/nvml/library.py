"""The one libnvidia-ml that pynvml keeps for a process, and whose turn it is to use it.

pynvml holds its library and a cache of function pointers in module globals. A real and a simulated
library, or two simulated nodes in one process, therefore take turns: `Library.held` puts its own
library in place and keeps every other thread out.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pynvml

from dragoon.errors import DriverMissingError, HardwareError

_T = TypeVar("_T")
_turn = threading.RLock()

_NO_DRIVER = frozenset({pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED})
_HINTS = {
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "the kernel module and the driver library differ in version: reboot the node, or reload "
        "the module"
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: "run as root, with access to /dev/nvidiactl",
}


class Library:
    """A library under pynvml: the installed driver's, or an object that stands for it.

    `stand_in` bears the C symbol names as attributes that are plain functions (`gpu.sim`).
    """

    def __init__(self, stand_in: object | None = None) -> None:
        self._loaded = stand_in
        self._is_open = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Makes this the library behind pynvml, for this thread alone, until the block ends."""
        with _turn:
            if pynvml.nvmlLib is not self._loaded:
                pynvml.nvmlLib = self._loaded
                pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - cached by name only
            try:
                yield
            finally:
                self._loaded = pynvml.nvmlLib

    def open(self) -> None:
        """Initialises the library unless it is; only while held.

        Raises DriverMissingError or HardwareError.
        """
        if not self._is_open:
            self.ask("initialise", pynvml.nvmlInit)
            self._is_open = True

    def shut(self) -> None:
        """Lets go of what `open` took; only while held. The next `open` sees the cards anew."""
        if self._is_open:
            self._is_open = False
            try:
                pynvml.nvmlShutdown()
            except pynvml.NVMLError:
                return  # nothing is left that could be released

    def ask(self, what: str, question: Callable[[], _T]) -> _T:
        """Asks the library as a whole.

        Raises DriverMissingError when there is no driver, else HardwareError, both in our words.
        """
        try:
            return question()
        except pynvml.NVMLError as error:
            code = error.value
            text = f"NVML, {what}: {error} (code {code})"
            if code in _NO_DRIVER:
                raise DriverMissingError(text) from error
            raise HardwareError(text, hint=_HINTS.get(code), retryable=True) from error

    def close(self, patience: float = 2.0) -> None:
        """Shuts the library down. Gives up after `patience` seconds when a call hangs in it."""
        if not _turn.acquire(timeout=patience):
            return
        try:
            with self.held():
                self.shut()
        finally:
            _turn.release()
