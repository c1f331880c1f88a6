"""Numbers from a driver that cannot be: they cost the card that said them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.condition import Polled
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.sim.codes import target
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.profiles import find_machine

PCI_INFO = "nvmlDeviceGetPciInfo_v3"
PLACEMENTS = "nvmlDeviceGetGpuInstancePossiblePlacements_v2"


Spoil = Callable[..., int | None]


class Nonsense:
    """A library of which one symbol has its answer spoilt, and its code where spoil returns one."""

    def __init__(self, library: SimulatedLibrary, symbol: str, spoil: Spoil) -> None:
        self._library = library
        self._symbol = symbol
        self._spoil = spoil

    def __getattr__(self, symbol: str) -> Any:
        function = getattr(self._library, symbol)
        if symbol != self._symbol:
            return function

        def spoilt(*arguments: Any) -> int:
            code = int(function(*arguments))
            spoilt_code = self._spoil(*arguments)
            return code if spoilt_code is None else spoilt_code

        return spoilt


def machine(folder: Path, symbol: str, spoil: Spoil) -> NvmlGpus:
    hardware = Hardware.installed(folder / "machine.json", find_machine("dgx-h100"), "node")
    library = Nonsense(SimulatedLibrary(hardware), symbol, spoil)
    return NvmlGpus(hardware.roots, stand_in=library)


@pytest.mark.parametrize(("member", "value"), [("bus", 0x100), ("bus", 2**32 - 1), ("device", 32)])
def test_an_address_that_no_bus_has_names_no_device(
    tmp_path: Path, member: str, value: int
) -> None:
    def spoil(_: Any, reference: Any) -> None:
        info = target(reference)
        if info.bus == 0x11:
            setattr(info, member, value)

    gpus = machine(tmp_path, PCI_INFO, spoil)
    found = gpus.inventory()
    gpus.close()
    assert len(found.gpus) == 7
    (lost,) = found.lost
    assert str(lost.address) == "0000:11:00.0", "the kernel still says where it is"
    assert "PCI address" in lost.reason


def test_events_of_no_kind_without_an_end_do_not_keep_the_caller(tmp_path: Path) -> None:
    """A card raises something, and says of what kind it is only after a while."""
    told = 0

    def spoil(_: Any, reference: Any, __: Any) -> int:
        nonlocal told
        told += 1
        target(reference).eventType = pynvml.nvmlEventTypePState if told < 1000 else 0x8
        return 0

    gpus = machine(tmp_path, "nvmlEventSetWait_v2", spoil)
    gpus.inventory()
    assert gpus.events.poll() == Polled(renewed=True)
    assert told < 1000
    gpus.close()


def leaves_the_profiles_unread(folder: Path, spoil: Spoil) -> None:
    gpus = machine(folder, PLACEMENTS, spoil)
    card = gpus.inventory().gpus[0]
    with pytest.raises(HardwareError, match="MIG placements: cannot be read"):
        gpus.mig.card(card.address)
    gpus.close()


def test_a_placement_of_no_size_leaves_the_profiles_unread(tmp_path: Path) -> None:
    def spoil(_: Any, __: Any, array: Any, count: Any) -> None:
        if array is not None:
            for place in array._obj[: target(count).value]:
                place.size = 0

    leaves_the_profiles_unread(tmp_path, spoil)


def test_more_placements_than_a_card_can_have_leave_the_profiles_unread(tmp_path: Path) -> None:
    def spoil(_: Any, __: Any, ___: Any, count: Any) -> None:
        target(count).value = 2**32 - 1

    leaves_the_profiles_unread(tmp_path, spoil)


def test_more_instances_than_a_card_can_have_leave_them_unread(tmp_path: Path) -> None:
    def spoil(_: Any, __: Any, reference: Any) -> None:
        target(reference).instanceCount = 2**32 - 1

    gpus = machine(tmp_path, "nvmlDeviceGetGpuInstanceProfileInfoV", spoil)
    Hardware(tmp_path / "machine.json").set_mig_mode(0, enabled=True)
    card = gpus.inventory().gpus[0]
    with pytest.raises(HardwareError, match="cannot be read"):
        gpus.mig.instances(card.address)
    gpus.close()


def test_more_processes_than_there_was_room_for_are_an_error_in_words(tmp_path: Path) -> None:
    def spoil(_: Any, count: Any, processes: Any) -> int:
        target(count).value = 1 if processes is None else 1000
        return pynvml.NVML_ERROR_INSUFFICIENT_SIZE if processes is None else 0

    gpus = machine(tmp_path, "nvmlDeviceGetComputeRunningProcesses_v3", spoil)
    card = gpus.inventory().gpus[0]
    with pytest.raises(HardwareError, match="list processes: the driver's answer cannot be read"):
        gpus.processes(card.address)
    gpus.close()
