"""libnvidia-ml as an object: C symbol names as attributes that are plain functions.

pynvml is told to use it instead of the loaded library (`gpu.nvml.library`). It looks symbols up by
name, calls them with whatever it has (see `codes`), and takes an AttributeError for a symbol that
this driver does not have.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from dragoon.errors import StateError
from dragoon.gpu.sim.answers import DEVICE_ANSWERS, View
from dragoon.gpu.sim.changes import Changes
from dragoon.gpu.sim.codes import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    SUCCESS,
    TEXTS,
    UNINITIALIZED,
    handle_address,
    number,
    put_handle,
    put_number,
    put_text,
    target,
)
from dragoon.gpu.sim.events import EventSet, wait
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.state import Effect, Fault, Loss, State

_HANDLE_BY_INDEX = "nvmlDeviceGetHandleByIndex_v2"
_BEFORE_INITIALISATION = frozenset({"nvmlInitWithFlags", "nvmlErrorString"})
_MISSING_CARDS = frozenset({Loss.UNLISTED, Loss.OFF_BUS})


class SimulatedLibrary:
    """The library of one process on a simulated machine.

    As in the real one, the list of cards is that of the moment of initialisation, and handles stay
    valid. Faults of the hardware's state take effect at the next call.
    """

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        self._guard = threading.Lock()
        self._opened = 0
        self._listed: list[int] = []
        self._handles: list[ctypes.Array[ctypes.c_char]] = []
        self._event_sets: dict[int, tuple[ctypes.Array[ctypes.c_char], EventSet]] = {}
        whole: dict[str, Callable[..., Any]] = {
            "nvmlInitWithFlags": self._init,
            "nvmlShutdown": self._shutdown,
            "nvmlErrorString": self._error_string,
            "nvmlSystemGetDriverVersion": self._driver_version,
            "nvmlSystemGetCudaDriverVersion_v2": self._cuda_version,
            "nvmlDeviceGetCount_v2": self._count,
            _HANDLE_BY_INDEX: self._handle_by_index,
            "nvmlDeviceRegisterEvents": self._register_events,
            "nvmlEventSetCreate": self._create_event_set,
            "nvmlEventSetFree": self._free_event_set,
            "nvmlEventSetWait_v2": self._wait,
        }
        self._functions = {
            **{name: self._plain(name, answer) for name, answer in whole.items()},
            **{
                name: self._plain(name, answer, per_device=True)
                for name, answer in DEVICE_ANSWERS.items()
            },
        }

    def __getattr__(self, symbol: str) -> Callable[..., Any]:
        function = self.__dict__.get("_functions", {}).get(symbol)
        if function is None or self._is_missing(symbol):
            raise AttributeError(symbol)
        return function  # type: ignore[no-any-return]

    def _is_missing(self, symbol: str) -> bool:
        try:
            state = self._hardware.read()
        except StateError:
            return False
        return any(f.symbol == symbol and f.effect is Effect.MISSING for f in state.faults)

    def _plain(
        self, symbol: str, answer: Callable[..., Any], *, per_device: bool = False
    ) -> Callable[..., Any]:
        # pynvml sets `restype` on some symbols, which a bound method does not allow.
        def call(*arguments: Any) -> Any:
            try:
                return self._call(symbol, answer, arguments, per_device=per_device)
            except StateError:
                return DRIVER_NOT_LOADED  # the machine was taken away

        return call

    def _call(
        self,
        symbol: str,
        answer: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        per_device: bool,
    ) -> Any:
        slot = self._slot(symbol, arguments, per_device=per_device)
        state = self._when_it_answers(symbol, slot)
        if not self._opened and symbol not in _BEFORE_INITIALISATION:
            return UNINITIALIZED
        fault = _fault(state, symbol, slot, arguments)
        garbled = fault is not None and fault.effect is Effect.GARBLE
        if fault is not None and not garbled:
            return FUNCTION_NOT_FOUND if fault.effect is Effect.MISSING else fault.code
        if not per_device:
            return answer(state, *arguments)
        if slot is None:
            return INVALID_ARGUMENT
        if state.cards[slot].loss is not None:
            return GPU_IS_LOST
        return answer(View(state, slot, garbled=garbled), *arguments[1:])

    def _slot(self, symbol: str, arguments: tuple[Any, ...], *, per_device: bool) -> int | None:
        """The card that a call is about: by its handle, or by the index of the handle wanted."""
        if symbol == _HANDLE_BY_INDEX:
            return self._slot_of_index(arguments[0])
        return self._slot_of_handle(arguments[0]) if per_device else None

    def _slot_of_index(self, index: Any) -> int | None:
        listed = self._listed
        return listed[number(index)] if 0 <= number(index) < len(listed) else None

    def _slot_of_handle(self, handle: Any) -> int | None:
        address = handle_address(handle)
        for slot, anchor in enumerate(self._handles):
            if ctypes.addressof(anchor) == address:
                return slot
        return None

    def _when_it_answers(self, symbol: str, slot: int | None) -> State:
        """The state, once the symbol does not hang any more."""
        state = self._hardware.read()
        if not _hangs(state, symbol, slot):
            return state
        with Changes(self._hardware.file.parent) as changes:
            while _hangs(state := self._hardware.read(), symbol, slot):
                changes.wait(None)
        return state

    def _init(self, state: State, _flags: Any) -> int:
        with self._guard:
            if not self._opened:
                cards = enumerate(state.cards)
                self._listed = [slot for slot, card in cards if card.loss not in _MISSING_CARDS]
                self._listed.sort(key=state.address)
            while len(self._handles) < len(state.cards):
                self._handles.append(ctypes.create_string_buffer(1))
            self._opened += 1
        return SUCCESS

    def _shutdown(self, _state: State) -> int:
        with self._guard:
            self._opened -= 1
        return SUCCESS

    def _error_string(self, _state: State, code: Any) -> bytes:
        return TEXTS.get(number(code), "Unknown Error").encode()

    def _driver_version(self, state: State, buffer: Any, size: Any) -> int:
        return put_text(buffer, size, state.machine.driver_version.encode())

    def _cuda_version(self, state: State, reference: Any) -> int:
        return put_number(reference, state.machine.cuda_version)

    def _count(self, _state: State, reference: Any) -> int:
        return put_number(reference, len(self._listed))

    def _handle_by_index(self, state: State, index: Any, reference: Any) -> int:
        slot = self._slot_of_index(index)
        if slot is None:
            return INVALID_ARGUMENT
        if state.cards[slot].loss is Loss.NO_HANDLE:
            return GPU_IS_LOST
        return put_handle(reference, ctypes.addressof(self._handles[slot]))

    def _create_event_set(self, _state: State, reference: Any) -> int:
        anchor = ctypes.create_string_buffer(1)
        address = ctypes.addressof(anchor)
        with self._guard:
            self._event_sets[address] = (anchor, EventSet())
        return put_handle(reference, address)

    def _free_event_set(self, _state: State, handle: Any) -> int:
        with self._guard:
            found = self._event_sets.pop(handle_address(handle) or 0, None)
        return SUCCESS if found else INVALID_ARGUMENT

    def _register_events(self, state: State, handle: Any, kinds: Any, events: Any) -> int:
        slot = self._slot_of_handle(handle)
        found = self._event_sets.get(handle_address(events) or 0)
        if slot is None or found is None:
            return INVALID_ARGUMENT
        found[1].register(state, slot, number(kinds))
        return SUCCESS

    def _wait(self, _state: State, events: Any, reference: Any, timeout_ms: Any) -> int:
        found = self._event_sets.get(handle_address(events) or 0)
        if found is None:
            return INVALID_ARGUMENT
        addresses = [ctypes.addressof(anchor) for anchor in self._handles]
        return wait(self._hardware, found[1], addresses, reference, timeout_ms)


def _hangs(state: State, symbol: str, slot: int | None) -> bool:
    return any(
        fault.effect is Effect.HANG and fault.symbol == symbol and fault.slot in {None, slot}
        for fault in state.faults
    )


def _fault(state: State, symbol: str, slot: int | None, arguments: tuple[Any, ...]) -> Fault | None:
    for fault in state.faults:
        if fault.symbol == symbol and fault.slot in {None, slot}:
            asked = fault.struct_version
            if asked is None or asked in map(_struct_version, arguments):
                return fault
    return None


def _struct_version(argument: Any) -> int | None:
    return getattr(target(argument), "version", None) if hasattr(argument, "_obj") else None
