"""What is raised by cards and what they say of themselves: the fakes and the adapter alike."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.condition import Condition, EventKind, GpuEvent, Polled, Recovery
from dragoon.gpu.condition_memory import MemoryConditions, MemoryEvents
from dragoon.gpu.model import PciAddress
from dragoon.gpu.port import Conditions, GpuEvents
from dragoon.gpu.sim.occupants import ConditionState
from dragoon.gpu.sim.state import Effect, Fault
from tests.unit.gpu.rig import Rig, rig

WELL = Condition(
    recovery=Recovery.NONE,
    uncorrected=0,
    remap_pending=False,
    remap_failed=False,
    repair_pending=False,
)


class Subject(Protocol):
    """events and conditions are under test; the rest is what happens to the hardware."""

    @property
    def events(self) -> GpuEvents: ...
    @property
    def conditions(self) -> Conditions: ...
    @property
    def first(self) -> PciAddress: ...
    def raise_xid(self, xid: int, gpu_instance: int | None = None) -> None: ...
    def set_condition(self, condition: Condition) -> None: ...
    def reopen(self) -> None: ...
    def break_(self) -> None: ...


class Faked:
    def __init__(self) -> None:
        self.events = MemoryEvents()
        self.first = PciAddress(0, 0x11, 0)
        self.conditions = MemoryConditions({self.first: Condition()})

    def raise_xid(self, xid: int, gpu_instance: int | None = None) -> None:
        self.events.raise_(GpuEvent(EventKind.XID, self.first, xid, gpu_instance))

    def set_condition(self, condition: Condition) -> None:
        self.conditions.cards[self.first] = condition

    def reopen(self) -> None:
        self.events.renew()

    def break_(self) -> None:
        self.events.error = self.conditions.error = HardwareError("broken")


class Simulated:
    def __init__(self, machine: Rig) -> None:
        self._rig = machine
        self.events = machine.gpus.events
        self.conditions = machine.gpus.conditions
        self.first = machine.address(0)

    def raise_xid(self, xid: int, gpu_instance: int | None = None) -> None:
        self._rig.hardware.raise_xid(0, xid, gpu_instance)

    def set_condition(self, condition: Condition) -> None:
        names = ("uncorrected", "remap_pending", "remap_failed", "pages_pending", "repair_pending")
        codes = {Recovery.NONE: 0, Recovery.GPU_RESET: 1, None: None}
        state = ConditionState(
            recovery=codes[condition.recovery],
            **{name: getattr(condition, name) for name in names},
        )
        self._rig.hardware.set_condition(0, state)

    def reopen(self) -> None:
        """After a look that misses a card, the next one opens the library anew."""
        self._rig.hardware.lose(1)
        self._rig.look()
        self._rig.look()

    def break_(self) -> None:
        self._rig.hardware.file.unlink()


@pytest.fixture(params=["fake", "simulated"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    if request.param == "fake":
        yield Faked()
        return
    with rig("dgx-h100", tmp_path) as machine:
        machine.look()
        yield Simulated(machine)


def xid(subject: Subject, number: int, gpu_instance: int | None = None) -> GpuEvent:
    return GpuEvent(EventKind.XID, subject.first, number, gpu_instance)


def test_the_first_answer_says_that_listening_begins_and_only_that(subject: Subject) -> None:
    subject.raise_xid(31)
    assert subject.events.poll() == Polled(renewed=True)
    assert subject.events.poll() == Polled()


def test_what_is_raised_is_handed_out_once_oldest_first(subject: Subject) -> None:
    subject.events.poll()
    subject.raise_xid(31)
    subject.raise_xid(79)
    assert subject.events.poll().events == (xid(subject, 31), xid(subject, 79))
    assert subject.events.poll().events == ()


def test_an_event_of_an_instance_names_it(subject: Subject) -> None:
    subject.events.poll()
    subject.raise_xid(48, gpu_instance=2)
    assert subject.events.poll().events == (xid(subject, 48, gpu_instance=2),)


def test_a_new_opening_of_the_library_is_told_and_events_go_on(subject: Subject) -> None:
    subject.events.poll()
    subject.reopen()
    assert subject.events.poll().renewed
    subject.raise_xid(79)
    assert subject.events.poll() == Polled((xid(subject, 79),))


def test_a_card_that_says_nothing_of_its_health_is_asked_without_harm(subject: Subject) -> None:
    assert subject.conditions()[subject.first] == Condition()


def test_what_a_card_says_is_told(subject: Subject) -> None:
    subject.set_condition(WELL)
    assert subject.conditions()[subject.first] == WELL
    ill = Condition(
        recovery=Recovery.GPU_RESET,
        uncorrected=3,
        remap_pending=True,
        remap_failed=True,
        pages_pending=True,
        repair_pending=True,
    )
    subject.set_condition(ill)
    assert subject.conditions()[subject.first] == ill


def test_a_library_that_fails_as_a_whole_is_an_error(subject: Subject) -> None:
    subject.events.poll()
    subject.break_()
    with pytest.raises(HardwareError):
        subject.conditions()
    with pytest.raises(HardwareError):
        subject.events.poll()


def test_a_card_that_cannot_be_registered_is_named_and_the_others_are_heard(
    tmp_path: Path,
) -> None:
    with rig("dgx-h100", tmp_path) as machine:
        machine.hardware.fail(Fault("nvmlDeviceRegisterEvents", code=3, slot=1))
        found = machine.gpus.events.poll()
        assert list(found.unwatched) == [machine.address(1)]
        machine.hardware.raise_xid(0, 79)
        (event,) = machine.gpus.events.poll().events
    assert event.address == machine.address(0)


@pytest.mark.parametrize("symbol", ["nvmlEventSetCreate", "nvmlDeviceGetSupportedEventTypes"])
def test_without_events_every_card_is_named(tmp_path: Path, symbol: str) -> None:
    with rig("dgx-h100", tmp_path) as machine:
        machine.hardware.fail(Fault(symbol, code=3))
        assert len(machine.gpus.events.poll().unwatched) == 8
        assert machine.gpus.events.poll().events == ()


def test_the_event_of_a_card_that_is_lost_by_now_still_says_whose_it_is(tmp_path: Path) -> None:
    with rig("dgx-h100", tmp_path) as machine:
        machine.gpus.events.poll()
        machine.hardware.raise_xid(0, 79)
        machine.hardware.lose(0)
        (event,) = machine.gpus.events.poll().events
        assert event.address == machine.address(0)


def test_a_set_that_says_that_some_card_is_lost_says_it_once_for_each_opening(
    tmp_path: Path,
) -> None:
    with rig("dgx-h100", tmp_path) as machine:
        machine.look()
        machine.gpus.events.poll()
        machine.hardware.fail(Fault("nvmlEventSetWait_v2", code=15))
        assert [machine.gpus.events.poll().lost for _ in range(3)] == [True, False, False]
        machine.hardware.lose(0)
        machine.look()
        machine.look()
        assert [machine.gpus.events.poll().lost for _ in range(2)] == [True, False]


def test_after_a_wait_that_fails_listening_begins_anew(tmp_path: Path) -> None:
    with rig("dgx-h100", tmp_path) as machine:
        machine.gpus.events.poll()
        machine.hardware.fail(Fault("nvmlEventSetWait_v2"))
        for _ in range(2):
            with pytest.raises(HardwareError, match="wait for events"):
                machine.gpus.events.poll()
        machine.hardware.lift("nvmlEventSetWait_v2")
        assert machine.gpus.events.poll() == Polled(renewed=True)
        machine.hardware.raise_xid(0, 79)
        assert len(machine.gpus.events.poll().events) == 1


def test_a_card_that_hangs_while_it_is_registered_keeps_nobody_else_waiting(
    tmp_path: Path,
) -> None:
    with rig("dgx-h100", tmp_path) as machine:
        machine.hardware.fail(Fault("nvmlDeviceRegisterEvents", Effect.HANG, slot=3))
        listening = threading.Thread(target=machine.gpus.events.poll)
        listening.start()
        assert len(machine.look().gpus) == 8
        assert len(machine.gpus.conditions()) == 8
        machine.hardware.lift("nvmlDeviceRegisterEvents")
        listening.join()


def test_a_lost_card_costs_the_conditions_of_no_other(tmp_path: Path) -> None:
    with rig("dgx-h100", tmp_path) as machine:
        machine.look()
        machine.hardware.lose(0)
        assert len(machine.gpus.conditions()) == 7


def test_a_recovery_action_of_a_newer_driver_is_not_taken_for_none(tmp_path: Path) -> None:
    with rig("dgx-h100", tmp_path) as machine:
        machine.hardware.set_condition(0, ConditionState(recovery=99))
        assert machine.gpus.conditions()[machine.address(0)].recovery is Recovery.OTHER


def test_a_reset_completes_what_is_pending(tmp_path: Path) -> None:
    ill = ConditionState(1, 2, remap_pending=True, remap_failed=True, pages_pending=True)
    with rig("dgx-h100", tmp_path) as machine:
        machine.hardware.set_condition(0, ill)
        machine.hardware.reset(0)
        found = machine.gpus.conditions()[machine.address(0)]
    assert found == Condition(
        Recovery.NONE, 0, remap_pending=False, remap_failed=True, pages_pending=False
    )
