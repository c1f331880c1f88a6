"""Event sets of the simulated library: who registered for which events of which card."""

import time
from dataclasses import dataclass, field
from typing import Any

from dragoon.gpu.sim.changes import Changes
from dragoon.gpu.sim.codes import SUCCESS, TIMEOUT, number, put_member, target
from dragoon.gpu.sim.handles import Handles, Kind, Thing
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.state import Event, State

_NO_INSTANCE = 0xFFFFFFFF  # the event is not of one MIG instance


@dataclass(frozen=True, slots=True)
class _Registration:
    kinds: int
    since: int  # number of the first event that is delivered


@dataclass(slots=True)
class EventSet:
    """Registrations by slot, and the number of the last event that was handed out."""

    seen: int = 0
    registrations: dict[int, _Registration] = field(default_factory=dict)

    def register(self, state: State, slot: int, kinds: int) -> None:
        """Events of the card from now on; what was raised before is not delivered."""
        before = self.registrations.get(slot)
        self.registrations[slot] = _Registration(
            kinds=kinds | (before.kinds if before else 0),
            since=before.since if before else state.next_event,
        )

    def take(self, state: State) -> Event | None:
        """The oldest event that was not handed out yet."""
        for event in state.events:
            wanted = self.registrations.get(event.slot)
            if (
                wanted is not None
                and event.kind & wanted.kinds
                and event.number >= wanted.since
                and event.number > self.seen
            ):
                self.seen = event.number
                return event
        return None


def wait(
    hardware: Hardware, events: EventSet, handles: Handles, reference: Any, timeout_ms: Any
) -> int:
    """nvmlEventSetWait_v2: fills the caller's event data, or says TIMEOUT."""
    until = time.monotonic() + number(timeout_ms) / 1000
    with Changes(hardware.file.parent) as changes:
        while (event := events.take(hardware.read())) is None:
            if not changes.wait(until):
                return TIMEOUT
    data = target(reference)
    data.eventType, data.eventData = event.kind, event.data
    data.gpuInstanceId = _or_none(event.gpu_instance)
    data.computeInstanceId = _or_none(event.compute_instance)
    put_member(data, "device", handles.address(Thing(Kind.DEVICE, event.slot)))
    return SUCCESS


def _or_none(instance: int | None) -> int:
    return _NO_INSTANCE if instance is None else instance
