"""What cards raise by themselves, through an event set of NVML.

pynvml has one library for the whole process, and whoever waits in it keeps others from opening it
anew. So a wait inside is short, and the caller pauses between two of them. An event set belongs to
one opening of the library: what waits in it is saved before that ends, and the next call registers
anew. Not the opening itself: it may happen in anybody's call, which must not wait for a card that
hangs while it is registered. Such a card is not watched until it has come back; then all cards are
registered anew.
"""

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

import pynvml

from dragoon.errors import HardwareError
from dragoon.gpu.condition import EventKind, GpuEvent, Polled
from dragoon.gpu.model import PciAddress
from dragoon.gpu.nvml.asking import Asking, CardSilentError
from dragoon.gpu.nvml.card import read_address
from dragoon.gpu.nvml.handles import Session
from dragoon.gpu.nvml.library import Library
from dragoon.gpu.nvml.walking import Patience, Walk

_WAIT_MS = 10
_MOST_EVENTS = 256
"""In one call, wanted or not: a card that raises without an end must not keep the caller."""
_NO_INSTANCE = 0xFFFFFFFF  # nvml.h: the event is not about one MIG instance
_KINDS = {
    pynvml.nvmlEventTypeXidCriticalError: EventKind.XID,
    pynvml.nvmlEventTypeDoubleBitEccError: EventKind.DOUBLE_BIT_ECC,
    pynvml.nvmlEventTypeDramRetirementEvent: EventKind.RETIREMENT,
    pynvml.nvmlEventTypeDramRetirementFailure: EventKind.RETIREMENT_FAILED,
    pynvml.nvmlEventTypeNonFatalPoisonError: EventKind.POISON,
    pynvml.nvmlEventTypeFatalPoisonError: EventKind.FATAL_POISON,
    pynvml.nvmlEventTypeGpuUnavailableError: EventKind.UNAVAILABLE,
    pynvml.nvmlEventTypeGpuRecoveryAction: EventKind.RECOVERY,
}
_WANTED = sum(_KINDS)


@dataclass(frozen=True, slots=True)
class _Listening:
    """One event set: whose handles are whose, and who raises nothing. set is None without one.

    whole: no card hangs that should be registered in it.
    """

    opening: int
    set: Any
    handles: Mapping[int | None, PciAddress] = field(default_factory=dict)
    unwatched: Mapping[PciAddress, str] = field(default_factory=dict)
    whole: bool = True


@dataclass(frozen=True, slots=True)
class _Registered:
    """A card that was asked to raise events; reason: why it does not."""

    address: PciAddress
    pointer: int | None
    reason: str


class NvmlEvents:
    """Implements `gpu.port.GpuEvents`."""

    def __init__(self, library: Library, session: Session, patience: Patience) -> None:
        self._library = library
        self._session = session
        self._walk = Walk(library, self._registered, attrgetter("address"), patience)
        self._set: Any = None
        self._listening = _Listening(0, None)
        self._told_lost = 0
        self._saved: list[GpuEvent] = []
        library.before_shut = self._save

    def poll(self) -> Polled:
        """See `gpu.port.GpuEvents`."""
        if not self._library.is_open:
            with self._session():
                pass  # opens it
        with self._library.held():
            renewed = self._listening.opening != self._library.openings
            if not (renewed or self._listening.whole or self._walk.hangs):
                self._save()
                self._give_up(self._listening)
                renewed = True
            if renewed:
                self._listening = self._listen(self._library.openings)
            listening = self._listening
            try:
                events, lost = self._take(listening, _WAIT_MS)
            except HardwareError:
                self._give_up(listening)
                raise
            saved, self._saved = self._saved, []
        if lost and self._told_lost == listening.opening:
            lost = False  # the set says so again and again until it is made anew
        elif lost:
            self._told_lost = listening.opening
        return Polled((*saved, *events), renewed, listening.unwatched, lost)

    def _save(self) -> None:
        """What was raised since the last call would be lost with the opening."""
        if self._listening.opening == self._library.openings:
            with suppress(HardwareError):
                events, _ = self._take(self._listening, 0)
                self._saved = [*self._saved, *events][:_MOST_EVENTS]

    def _give_up(self, listening: _Listening) -> None:
        """Lets go of a set; the next call makes another one, but for one that somebody is in."""
        if self._walk.hangs:
            return
        self._listening = _Listening(0, None)
        with suppress(pynvml.NVMLError):
            pynvml.nvmlEventSetFree(listening.set)

    def _listen(self, opening: int) -> _Listening:
        count = self._library.count()
        self._set, code = Asking().answer("event set", pynvml.nvmlEventSetCreate)
        walked = self._walk(count)
        why = f"no event set (NVML code {code})"
        reasons = {
            card.address: why if self._set is None else card.reason for card in walked.answers
        }
        reasons |= {address: self._walk.why_silent for address in walked.silent if address}
        return _Listening(
            opening,
            self._set,
            {card.pointer: card.address for card in walked.answers},
            {address: reason for address, reason in reasons.items() if reason},
            whole=not walked.silent,
        )

    def _registered(self, index: int) -> _Registered | None:
        events, card = self._set, _card(index)
        if card is None:
            return None
        handle, address = card
        reason = "" if events is None else _register(handle, events)
        return _Registered(address, _pointer(handle), reason)

    def _take(self, listening: _Listening, wait_ms: int) -> tuple[tuple[GpuEvent, ...], bool]:
        """The events that wait, and whether the set says that a card is lost."""
        if listening.set is None:
            return (), False
        found: list[GpuEvent] = []
        for _ in range(_MOST_EVENTS):
            try:
                data = pynvml.nvmlEventSetWait_v2(listening.set, wait_ms)
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_TIMEOUT:
                    break
                if error.value == pynvml.NVML_ERROR_GPU_IS_LOST:
                    return tuple(found), True
                if not found:
                    self._library.ask("wait for events", partial(_again, error))
                break
            kind = _KINDS.get(data.eventType)
            if kind is not None:
                found.append(_event(kind, data, listening.handles))
        return tuple(found), False


def _card(index: int) -> tuple[Any, PciAddress] | None:
    """The handle of a card and where it is; None for a card that is silent."""
    asking = Asking()
    try:
        handle = asking.must("handle", partial(pynvml.nvmlDeviceGetHandleByIndex, index))
        return handle, asking.must("PCI address", partial(read_address, handle))
    except CardSilentError:
        return None


def _register(handle: Any, events: Any) -> str:
    """Registers for what the card can raise of what is wanted; answers why not, or nothing."""
    try:
        kinds = pynvml.nvmlDeviceGetSupportedEventTypes(handle) & _WANTED
        if not kinds & pynvml.nvmlEventTypeXidCriticalError:
            return "the card does not report XIDs"
        pynvml.nvmlDeviceRegisterEvents(handle, kinds, events)
    except pynvml.NVMLError as error:
        return f"{error} (NVML code {error.value})"
    return ""


def _again(error: pynvml.NVMLError) -> None:
    raise error


def _event(kind: EventKind, data: Any, handles: Mapping[int | None, PciAddress]) -> GpuEvent:
    return GpuEvent(
        kind,
        handles.get(_pointer(data.device)) or _asked(data.device),
        data.eventData if kind is EventKind.XID else 0,
        _instance(data.gpuInstanceId),
        _instance(data.computeInstanceId),
    )


def _asked(handle: Any) -> PciAddress | None:
    """Where a card is that was not there when listening began; a lost one does not say it."""
    try:
        return read_address(handle)
    except (pynvml.NVMLError, ValueError):
        return None


def _instance(identity: int) -> int | None:
    return None if identity == _NO_INSTANCE else identity


def _pointer(handle: Any) -> int | None:
    """Two handles of one card are not equal; what they point to is."""
    return ctypes.cast(handle, ctypes.c_void_p).value
