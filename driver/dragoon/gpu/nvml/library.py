"""The one libnvidia-ml that pynvml keeps for a process, and whose turn it is to use it.

pynvml holds its library and a cache of function pointers in module globals. A real and a simulated
library, or two simulated nodes in one process, therefore take turns: `Library.held` puts its own
library in place and keeps users of every other one out. Threads that use the same library work at
the same time, as NVML allows: a slow card holds up nobody else.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import pynvml

from dragoon.errors import DriverMissingError, HardwareError
from dragoon.gpu.model import PciAddress

_T = TypeVar("_T")
_NAME: Final = "libnvidia-ml.so.1"
_MOST_CARDS: Final = 1024


class _Turn:
    """Which library is behind pynvml, and the threads that use it now."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owner: Library | None = None
        self._depths: dict[int, int] = {}
        self._alone: int | None = None

    @contextmanager
    def of(self, library: "Library", patience: float | None = None) -> Iterator[bool]:
        """Lets the thread use the library until the block ends.

        patience: seconds to wait until no other thread uses it or another one; False when they do
        not end. None: waits for users of other libraries only, for ever.
        """
        me = threading.get_ident()
        with self._changed:
            entered = self._changed.wait_for(
                lambda: self._may_enter(me, library, alone=patience is not None), patience
            )
            if entered:
                self._depths[me] = self._depths.get(me, 0) + 1
                self._owner = library
                library.put_behind_pynvml()
        try:
            yield entered
        finally:
            if entered:
                self._leave(me)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether this block is the only user; then nobody comes in until it ends.

        The block may hang in the driver: who waits to come in can give up meanwhile.
        """
        me = threading.get_ident()
        with self._changed:
            is_alone = self._depths == {me: 1}
            if is_alone:
                self._alone = me
        try:
            yield is_alone
        finally:
            if is_alone:
                with self._changed:
                    self._alone = None
                    self._changed.notify_all()

    def _may_enter(self, me: int, library: "Library", *, alone: bool) -> bool:
        others = set(self._depths) - {me}
        is_open = self._alone in {None, me}
        return is_open and (not others or (self._owner is library and not alone))

    def _leave(self, me: int) -> None:
        with self._changed:
            self._depths[me] -= 1
            if not self._depths[me]:
                del self._depths[me]
            self._changed.notify_all()


_turn = _Turn()

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

    `stand_in` bears the C symbol names as attributes that are plain functions (`gpu.sim`). folders:
    where the driver's library is looked for; it is in none of them: where the system finds it.
    """

    def __init__(self, stand_in: object | None = None, *, folders: Sequence[Path] = ()) -> None:
        self._loaded = stand_in
        self._folders = tuple(folders)
        self._is_open = False
        self._opening = threading.Lock()
        self.openings = 0
        """How often it was opened: what belongs to one opening ends with it."""
        self.places: dict[int, PciAddress] = {}
        """Where the cards with these indices are, as far as they said it in this opening."""
        self.before_shut: Callable[[], None] | None = None
        """Called before an opening ends, while held: the last moment to save what ends with it."""

    @property
    def is_open(self) -> bool:
        """Whether it is initialised now."""
        return self._is_open

    @contextmanager
    def held(self) -> Iterator[None]:
        """Makes this the library behind pynvml until the block ends, for every thread that asks."""
        with _turn.of(self):
            try:
                yield
            finally:
                self._loaded = pynvml.nvmlLib

    def put_behind_pynvml(self) -> None:
        """For the turn only: from now on pynvml uses this library."""
        if pynvml.nvmlLib is not self._loaded:
            pynvml.nvmlLib = self._loaded
            pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - cached by name only

    def open(self) -> None:
        """Initialises the library unless it is; only while held.

        Raises DriverMissingError or HardwareError.
        """
        with self._opening:
            if not self._is_open:
                self._load()
                self.ask("initialise", self._initialise)
                self._is_open = True
                self.openings += 1
                self.places = {}

    def _initialise(self) -> None:
        """The library of a replaced driver refuses the new kernel module: then once anew."""
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError_LibRmVersionMismatch:
            if not self._unload():
                raise
            self._load()
            pynvml.nvmlInit()

    def _unload(self) -> bool:
        """Lets go of the library's file, unless somebody else is in it; says whether it did.

        The loader would answer with the file that it has, for it goes by the library's own name.
        """
        with _turn.alone() as alone:
            if not alone or not isinstance(self._loaded, ctypes.CDLL):
                return False
            ctypes.CDLL(None).dlclose(ctypes.c_void_p(self._loaded._handle))  # noqa: SLF001
            self._loaded = None
            self.put_behind_pynvml()
            return True

    def _load(self) -> None:
        """Loads the first library in the folders; pynvml loads the system's where none is put."""
        if self._loaded is not None:
            return
        for file in (folder / _NAME for folder in self._folders):
            try:
                # Asking whether it is there fails in a folder that only others may enter.
                if not file.exists():
                    continue
                self._loaded = ctypes.CDLL(str(file))
            except OSError as error:
                raise DriverMissingError(f"{file} cannot be loaded: {error}") from error
            self.put_behind_pynvml()
            return

    def shut_when_alone(self) -> bool:
        """Like `shut`, unless somebody else uses the library now; says whether it was done."""
        with _turn.alone() as alone:
            if alone:
                self.shut()
            return alone

    def shut(self) -> None:
        """Lets go of what `open` took; only while held. The next `open` sees the cards anew."""
        with self._opening:
            if self._is_open:
                if self.before_shut is not None:
                    self.before_shut()
                self._is_open = False
                with suppress(pynvml.NVMLError):  # nothing is left that could be released
                    pynvml.nvmlShutdown()

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

    def count(self) -> int:
        """How many cards it lists; only while held. Raises as `ask`."""
        found: int = self.ask("count of GPUs", pynvml.nvmlDeviceGetCount)
        if found > _MOST_CARDS:
            raise HardwareError(
                f"NVML, count of GPUs: found {found}, expected at most {_MOST_CARDS}",
                retryable=True,
            )
        return found

    def close(self, patience: float = 2.0) -> None:
        """Shuts the library down.

        Gives up after `patience` seconds when a call hangs in it, and when this one hangs itself.
        """
        closing = threading.Thread(target=self._close, args=(patience,), daemon=True)
        closing.start()
        closing.join(2 * patience)

    def _close(self, patience: float) -> None:
        with _turn.of(self, patience) as entered:
            if entered:
                self.shut()
