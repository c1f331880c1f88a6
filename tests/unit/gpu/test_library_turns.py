"""Threads of one library work together; users of different libraries take turns."""

import threading
from pathlib import Path

import pynvml
import pytest

from dragoon.gpu.nvml.library import Library
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import Effect, Fault, Loss
from tests.unit.gpu.rig import eventually, rig


def library(folder: Path, machine: str) -> Library:
    hardware = Hardware.installed(folder / f"{machine}.json", find_machine(machine), machine)
    return Library(SimulatedLibrary(hardware))


def test_threads_of_one_library_are_in_it_at_once(tmp_path: Path) -> None:
    shared, met = library(tmp_path, "t4"), threading.Barrier(2)

    def use() -> None:
        with shared.held():
            shared.open()
            met.wait(timeout=60)  # breaks unless both are inside

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not met.broken
    shared.close()


def test_another_library_waits_until_nobody_is_in_this_one(tmp_path: Path) -> None:
    one, other = library(tmp_path, "t4"), library(tmp_path, "dgx-h100")
    counts: list[int] = []

    def use_other() -> None:
        with other.held():
            other.open()
            counts.append(pynvml.nvmlDeviceGetCount())

    with one.held():
        one.open()
        thread = threading.Thread(target=use_other)
        thread.start()
        assert [pynvml.nvmlDeviceGetCount() for _ in range(50)] == [1] * 50
        assert counts == []
    thread.join()
    assert counts == [8]
    one.close()
    other.close()


def test_a_library_is_not_shut_while_another_thread_uses_it(tmp_path: Path) -> None:
    shared = library(tmp_path, "t4")
    answers: list[bool] = []

    def try_to_shut() -> None:
        with shared.held():
            answers.append(shared.shut_when_alone())

    with shared.held():
        shared.open()
        thread = threading.Thread(target=try_to_shut)
        thread.start()
        thread.join()
        assert pynvml.nvmlDeviceGetCount() == 1
    with shared.held():
        answers.append(shared.shut_when_alone())
    assert answers == [False, True]


def test_closing_gives_up_while_a_call_does_not_come_back(tmp_path: Path) -> None:
    shared = library(tmp_path, "t4")
    inside, done = threading.Event(), threading.Event()

    def hang() -> None:
        with shared.held():
            shared.open()
            inside.set()
            done.wait(timeout=60)

    thread = threading.Thread(target=hang)
    thread.start()
    inside.wait(timeout=60)
    shared.close(patience=0)
    with shared.held():
        assert pynvml.nvmlDeviceGetCount() == 1  # still open
    done.set()
    thread.join()
    shared.close()


@pytest.mark.parametrize("by_itself", [True, False])
def test_closing_gives_up_while_shutting_down_does_not_come_back(
    tmp_path: Path, *, by_itself: bool
) -> None:
    hardware = Hardware.installed(tmp_path / "m.json", find_machine("t4"), "node")
    stuck = Library(SimulatedLibrary(hardware))

    def use() -> None:
        with stuck.held():
            stuck.open()
            if not by_itself:
                stuck.shut_when_alone()

    hardware.fail(Fault("nvmlShutdown", Effect.HANG))
    using = threading.Thread(target=use)
    using.start()
    if by_itself:
        using.join()
    else:
        eventually(lambda: stuck.openings == 1)
    closing = threading.Thread(target=stuck.close, args=(0.05,), daemon=True)
    closing.start()
    closing.join(120)
    gave_up = not closing.is_alive()
    hardware.lift("nvmlShutdown")
    using.join()
    assert gave_up
    other = library(tmp_path, "dgx-h100")
    with other.held():  # all have left the one before
        other.open()
    other.close()


def test_a_card_that_appears_while_handles_are_used_is_found_afterwards(tmp_path: Path) -> None:
    """The library is opened anew only when nobody has handles of the one before."""
    with rig("l40s-4way-pcie", tmp_path) as machine:
        machine.hardware.lose(0, Loss.OFF_BUS)
        assert len(machine.look().gpus) == 3
        found: list[int] = []
        with machine.gpus.session():
            machine.hardware.bring_back(0)
            thread = threading.Thread(target=lambda: found.append(len(machine.look().gpus)))
            thread.start()
            thread.join()
        assert found == [3]
        assert len(machine.look().gpus) == 4
