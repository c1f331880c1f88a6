"""A simulated card that hangs the driver's library, seen through the ports."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.condition import Condition, GpuEvent, Recovery
from dragoon.gpu.model import Inventory, LostGpu
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.nvml.walking import Patience
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.occupants import ConditionState
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import Effect, Fault, Loss
from tests.unit.gpu.rig import Rig, eventually

MEMORY, ERRORS = "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetTotalEccErrors"
REGISTER = "nvmlDeviceRegisterEvents"
WHY = "has not answered for 0.5 s"


def hang(symbol: str, slot: int) -> Fault:
    return Fault(symbol, Effect.HANG, slot=slot)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Rig]:
    """Four cards without links, which answer quickly."""
    hardware = Hardware.installed(tmp_path / "m.json", find_machine("l40s-4way-pcie"), "node")
    library = SimulatedLibrary(hardware)
    patience = Patience(card=0.5, grace=0.05)
    gpus = NvmlGpus(hardware.roots, stand_in=library, patience=patience)
    try:
        yield Rig(gpus, hardware)
    finally:
        for symbol in {fault.symbol for fault in hardware.read().faults}:
            hardware.lift(symbol)
        gpus.close()


def all_well(machine: Rig) -> Inventory:
    found: list[Inventory] = []

    def is_whole() -> bool:
        found[:] = [machine.look()]
        return not found[0].lost

    eventually(is_whole)
    return found[0]


def lost(machine: Rig) -> list[tuple[int, str]]:
    found = machine.look().lost
    slots = machine.slots(tuple(card.address for card in found if card.address))
    return [(slot, card.reason) for slot, card in zip(slots, found, strict=True)]


@pytest.mark.parametrize("symbol", [MEMORY, "nvmlDeviceGetHandleByIndex_v2"])
@pytest.mark.parametrize("slot", [0, 3])
def test_a_card_that_hangs_is_lost_with_the_reason_and_its_name(
    machine: Rig, symbol: str, slot: int
) -> None:
    card = all_well(machine).gpus[slot]
    machine.hardware.fail(hang(symbol, slot))
    expected = LostGpu(card.address, WHY, card.uuid, hangs=True)
    eventually(lambda: machine.look().lost == (expected,))


def test_a_card_that_hangs_from_the_start_is_found_on_the_bus(machine: Rig) -> None:
    machine.hardware.fail(hang("nvmlDeviceGetHandleByIndex_v2", 2))
    eventually(lambda: lost(machine) == [(2, WHY)])


def test_the_listing_of_a_card_that_hangs_is_not_read(machine: Rig) -> None:
    """To read it, the kernel module asks the card."""
    address = machine.address(1)
    listing = machine.hardware.roots.proc / "driver/nvidia/gpus" / str(address) / "information"
    machine.hardware.fail(hang(MEMORY, 1))
    listing.unlink()
    os.mkfifo(listing)
    found: list[tuple[LostGpu, ...]] = []

    def look() -> None:
        eventually(lambda: len(machine.look().lost) == 1)
        found.append(machine.look().lost)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(120)
    os.close(os.open(listing, os.O_RDWR))  # whoever reads it goes on
    listing.unlink()
    assert found == [(LostGpu(address, WHY, hangs=True),)]


def test_while_a_card_hangs_the_others_are_seen_as_they_are(machine: Rig) -> None:
    all_well(machine)
    machine.hardware.fail(hang(MEMORY, 1))
    eventually(lambda: lost(machine) == [(1, WHY)])
    machine.hardware.lose(2, Loss.SILENT)
    eventually(lambda: [slot for slot, _ in lost(machine)] == [1, 2])
    machine.hardware.bring_back(2)
    eventually(lambda: lost(machine) == [(1, WHY)])


def test_a_card_that_answers_again_is_as_before(machine: Rig) -> None:
    before = all_well(machine)
    machine.hardware.fail(hang(MEMORY, 1))
    eventually(lambda: lost(machine) == [(1, WHY)])
    machine.hardware.lift(MEMORY)
    eventually(lambda: machine.look() == before)


def test_the_library_is_opened_anew_only_when_the_call_that_hangs_is_back(machine: Rig) -> None:
    before = all_well(machine)
    machine.hardware.lose(2, Loss.OFF_BUS)
    eventually(lambda: [slot for slot, _ in lost(machine)] == [2])
    machine.hardware.fail(hang(MEMORY, 1))
    eventually(lambda: [slot for slot, _ in lost(machine)] == [1, 2])
    machine.hardware.bring_back(2)
    # Only an opening shows it. Under the call that hangs it would end that call's handles.
    assert all(2 in dict(lost(machine)) for _ in range(5))
    machine.hardware.lift(MEMORY)
    eventually(lambda: machine.look() == before)


def test_a_card_that_hangs_when_it_is_asked_how_it_is_says_so_and_costs_no_other(
    machine: Rig,
) -> None:
    addresses = [machine.address(slot) for slot in range(4)]
    machine.hardware.set_condition(0, ConditionState(recovery=0))
    before = Condition(Recovery.NONE)
    eventually(lambda: machine.gpus.conditions().get(addresses[0]) == before)
    machine.hardware.fail(hang(ERRORS, 0))
    machine.hardware.set_condition(3, ConditionState(recovery=1))

    def others_are_fresh() -> bool:
        found = machine.gpus.conditions()
        silent = [address for address, one in found.items() if one.silent]
        return silent == addresses[:1] and found[addresses[3]].recovery is Recovery.GPU_RESET

    eventually(others_are_fresh)
    assert machine.gpus.conditions()[addresses[0]].silent == WHY
    all_well(machine)  # what a look asks is answered
    machine.hardware.lift(ERRORS)
    eventually(lambda: machine.gpus.conditions()[addresses[0]] == before)


def test_a_card_that_hangs_while_it_is_registered_is_not_watched_and_the_others_are(
    machine: Rig,
) -> None:
    addresses = [card.address for card in all_well(machine).gpus]
    listen = machine.gpus.events.poll

    def is_heard(slot: int) -> bool:
        machine.hardware.raise_xid(slot, 79)
        return any(event.address == addresses[slot] for event in listen().events)

    machine.hardware.fail(hang(REGISTER, 1))
    eventually(lambda: listen().unwatched == {addresses[1]: WHY})
    eventually(lambda: is_heard(2))
    machine.hardware.lift(REGISTER)
    eventually(lambda: not listen().unwatched)
    eventually(lambda: is_heard(1))


def test_a_set_in_which_a_card_is_being_registered_is_kept_though_it_fails(machine: Rig) -> None:
    addresses = [card.address for card in all_well(machine).gpus]
    listen = machine.gpus.events.poll
    machine.hardware.fail(hang(REGISTER, 1))
    eventually(lambda: listen().unwatched == {addresses[1]: WHY})
    machine.hardware.fail(Fault("nvmlEventSetWait_v2"))
    with pytest.raises(HardwareError, match="wait for events"):
        listen()
    machine.hardware.raise_xid(2, 79)
    machine.hardware.lift("nvmlEventSetWait_v2")
    polled = listen()
    assert [event.address for event in polled.events] == [addresses[2]]
    assert not polled.renewed


def test_what_waits_is_not_lost_when_a_card_is_back(machine: Rig) -> None:
    addresses = [card.address for card in all_well(machine).gpus]
    listen = machine.gpus.events.poll
    machine.hardware.fail(hang(REGISTER, 1))
    eventually(lambda: listen().unwatched == {addresses[1]: WHY})
    machine.hardware.raise_xid(2, 79)
    machine.hardware.lift(REGISTER)
    heard: list[GpuEvent] = []

    def is_whole() -> bool:
        polled = listen()
        heard.extend(polled.events)
        return not polled.unwatched

    eventually(is_whole)
    assert [(event.address, event.number) for event in heard] == [(addresses[2], 79)]


def test_what_a_silent_card_said_before_stands() -> None:
    said, silent = Condition(Recovery.GPU_RESET, 3), Condition(silent=WHY)
    assert silent.after(said) == Condition(Recovery.GPU_RESET, 3, silent=WHY)
    assert silent.after(None) == silent
    assert said.after(silent) == said
