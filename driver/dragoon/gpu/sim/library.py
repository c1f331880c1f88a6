"""libnvidia-ml as an object: C symbol names as attributes that are plain functions.

pynvml is told to use it instead of the loaded library (`gpu.nvml.library`). It looks symbols up by
name, calls them with whatever it has (see `codes`), and takes an AttributeError for a symbol that
this driver does not have.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

from dragoon.errors import InvalidInputError, StateError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.sim.answers import DEVICE_ANSWERS, View
from dragoon.gpu.sim.changes import Changes
from dragoon.gpu.sim.codes import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_FOUND,
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
from dragoon.gpu.sim.condition_answers import CONDITION_ANSWERS
from dragoon.gpu.sim.events import EventSet, wait
from dragoon.gpu.sim.handles import Handles, Kind, Thing
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.link_answers import LINK_ANSWERS
from dragoon.gpu.sim.mig_answers import MigAnswers
from dragoon.gpu.sim.partitioning import RefusedError
from dragoon.gpu.sim.state import Effect, Fault, Loss, State
from dragoon.gpu.sim.usage_answers import (
    LIMIT_SYMBOLS,
    MIG_DEVICE_ANSWERS,
    USAGE_ANSWERS,
    LimitAnswers,
)

_OF_CARDS = {**DEVICE_ANSWERS, **LINK_ANSWERS, **CONDITION_ANSWERS}
_HANDLE_BY_INDEX = "nvmlDeviceGetHandleByIndex_v2"
_HANDLE_BY_ADDRESS = "nvmlDeviceGetHandleByPciBusId_v2"
_REGISTER_EVENTS = "nvmlDeviceRegisterEvents"
_DEVICES = (Kind.DEVICE, Kind.MIG_DEVICE)
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
        self._handles = Handles()
        self._event_sets: dict[int, tuple[ctypes.Array[ctypes.c_char], EventSet]] = {}
        whole: dict[str, Callable[..., Any]] = {
            "nvmlInitWithFlags": self._init,
            "nvmlShutdown": self._shutdown,
            "nvmlErrorString": self._error_string,
            "nvmlSystemGetDriverVersion": self._driver_version,
            "nvmlSystemGetCudaDriverVersion_v2": self._cuda_version,
            "nvmlDeviceGetCount_v2": self._count,
            _HANDLE_BY_INDEX: self._handle_by_index,
            _HANDLE_BY_ADDRESS: self._handle_by_address,
            _REGISTER_EVENTS: self._register_events,
            "nvmlEventSetCreate": self._create_event_set,
            "nvmlEventSetFree": self._free_event_set,
            "nvmlEventSetWait_v2": self._wait,
        }
        of_instances = MigAnswers(hardware, self._handles).table()
        of_devices = {**USAGE_ANSWERS, **LimitAnswers(hardware).table()}
        both = {**_OF_CARDS, **MIG_DEVICE_ANSWERS}
        self._functions = {
            **{name: self._plain(name, answer) for name, answer in whole.items()},
            **{name: self._plain(name, self._of_device(name), _DEVICES) for name in both},
            **{name: self._plain(name, answer, _DEVICES) for name, answer in of_devices.items()},
            **{
                name: self._plain(name, answer, (_kind_asked(name),))
                for name, answer in of_instances.items()
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
        if symbol in LIMIT_SYMBOLS and state.accounting is None:
            return True
        return any(f.symbol == symbol and f.effect is Effect.MISSING for f in state.faults)

    def _plain(
        self, symbol: str, answer: Callable[..., Any], kinds: tuple[Kind, ...] = ()
    ) -> Callable[..., Any]:
        # pynvml sets `restype` on some symbols, which a bound method does not allow.
        def call(*arguments: Any) -> Any:
            try:
                return self._call(symbol, answer, arguments, kinds)
            except RefusedError as refused:
                return refused.code
            except StateError:
                return DRIVER_NOT_LOADED  # the machine was taken away

        return call

    def _call(
        self,
        symbol: str,
        answer: Callable[..., Any],
        arguments: tuple[Any, ...],
        kinds: tuple[Kind, ...],
    ) -> Any:
        thing = self._handles.thing(arguments[0], *kinds) if kinds else None
        slot = thing.slot if thing else self._slot_wanted(symbol, arguments)
        state = self._when_it_answers(symbol, slot)
        if not self._opened and symbol not in _BEFORE_INITIALISATION:
            return UNINITIALIZED
        fault = _fault(state, symbol, slot, arguments)
        if fault is not None and fault.effect is Effect.SLOW:
            time.sleep(fault.milliseconds / 1000)
            state = self._hardware.read()
        elif fault is not None and fault.effect is not Effect.GARBLE:
            return FUNCTION_NOT_FOUND if fault.effect is Effect.MISSING else fault.code
        if not kinds:
            return answer(state, *arguments)
        if thing is None:
            return INVALID_ARGUMENT
        if state.cards[thing.slot].loss is not None:
            return GPU_IS_LOST
        return answer(state, thing, *arguments[1:])

    def _of_device(self, symbol: str) -> Callable[..., int]:
        """What a symbol answers for a card's handle, and what for a MIG device's."""
        of_card, of_mig = _OF_CARDS.get(symbol), MIG_DEVICE_ANSWERS.get(symbol)

        def answer(state: State, thing: Thing, *arguments: Any) -> int:
            if thing.kind is Kind.MIG_DEVICE and of_mig is not None:
                return of_mig(state, thing, *arguments)
            if thing.kind is Kind.DEVICE and of_card is not None:
                fault = _fault(state, symbol, thing.slot, arguments)
                garbled = fault is not None and fault.effect is Effect.GARBLE
                return of_card(View(state, thing.slot, garbled=garbled), *arguments)
            return INVALID_ARGUMENT

        return answer

    def _slot_wanted(self, symbol: str, arguments: tuple[Any, ...]) -> int | None:
        """The card whose handle is asked for, or whose events."""
        if symbol == _HANDLE_BY_INDEX:
            return self._slot_of_index(arguments[0])
        if symbol == _REGISTER_EVENTS:
            card = self._handles.thing(arguments[0], Kind.DEVICE)
            return card.slot if card else None
        return None

    def _slot_of_index(self, index: Any) -> int | None:
        listed = self._listed
        return listed[number(index)] if 0 <= number(index) < len(listed) else None

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
            self._opened += 1
        return SUCCESS

    def _shutdown(self, _state: State) -> int:
        with self._guard:
            self._opened -= 1
            if not self._opened:
                self._event_sets.clear()
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
        return INVALID_ARGUMENT if slot is None else self._put_card(state, slot, reference)

    def _handle_by_address(self, state: State, text: Any, reference: Any) -> int:
        try:
            wanted = PciAddress.parse(text.value.decode("ascii", "replace"))
        except InvalidInputError:
            return INVALID_ARGUMENT
        for slot in self._listed:
            if state.address(slot) == wanted:
                return self._put_card(state, slot, reference)
        return NOT_FOUND

    def _put_card(self, state: State, slot: int, reference: Any) -> int:
        if state.cards[slot].loss is Loss.NO_HANDLE:
            return GPU_IS_LOST
        return self._handles.put(reference, Thing(Kind.DEVICE, slot))

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
        card = self._handles.thing(handle, Kind.DEVICE)
        found = self._event_sets.get(handle_address(events) or 0)
        if card is None or found is None:
            return INVALID_ARGUMENT
        found[1].register(state, card.slot, number(kinds))
        return SUCCESS

    def _wait(self, _state: State, events: Any, reference: Any, timeout_ms: Any) -> int:
        found = self._event_sets.get(handle_address(events) or 0)
        if found is None:
            return INVALID_ARGUMENT
        return wait(self._hardware, found[1], self._handles, reference, timeout_ms)


def _kind_asked(symbol: str) -> Kind:
    """What a function for MIG takes, by its name in nvml.h."""
    for prefix, kind in (
        ("nvmlGpuInstance", Kind.GPU_INSTANCE),
        ("nvmlComputeInstance", Kind.COMPUTE_INSTANCE),
    ):
        if symbol.startswith(prefix):
            return kind
    return Kind.DEVICE


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
