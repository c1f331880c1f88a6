"""The library while it starts, ends and is away: errors with hints, closing, several threads."""

import threading
from pathlib import Path

import pytest

from dragoon.errors import DragoonError, DriverMissingError, HardwareError
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.nvml.library import Library
from tests.unit.gpu.rig import Simulate


def test_no_driver_says_so_with_a_hint() -> None:
    gpus = NvmlGpus(stand_in=_Broken(12))
    with pytest.raises(DriverMissingError) as caught:
        gpus.inventory()
    assert "--simulate" in caught.value.hint
    gpus.close()


@pytest.mark.parametrize(
    ("code", "kind", "word"),
    [
        (9, DriverMissingError, "install"),
        (18, HardwareError, "reboot"),
        (4, HardwareError, "root"),
        (999, HardwareError, ""),
    ],
)
def test_a_library_that_does_not_start_names_its_code(
    code: int, kind: type[DragoonError], word: str
) -> None:
    gpus = NvmlGpus(stand_in=_Broken(code))
    with pytest.raises(kind) as caught:
        gpus.inventory()
    assert f"code {code}" in caught.value.message
    assert word in caught.value.hint


def test_a_folder_that_cannot_be_looked_into_is_a_missing_driver(tmp_path: Path) -> None:
    """As one of root's for somebody else; here by a name that no file system takes."""
    gpus = NvmlGpus(folders=[tmp_path / ("x" * 300)])
    with pytest.raises(DriverMissingError, match="cannot be loaded"):
        gpus.inventory()
    gpus.close()


def test_a_driver_taken_away_is_an_error_and_works_again_when_it_is_back(
    simulate: Simulate,
) -> None:
    machine = simulate("t4")
    before = machine.look()
    aside = machine.hardware.file.with_suffix(".aside")
    machine.hardware.file.rename(aside)
    with pytest.raises(DriverMissingError):
        machine.look()
    aside.rename(machine.hardware.file)
    assert machine.look() == before


def test_closing_twice_is_one_closing(simulate: Simulate) -> None:
    machine = simulate("t4")
    machine.look()
    machine.gpus.close()
    machine.gpus.close()
    assert len(machine.look().gpus) == 1


def test_several_threads_may_look_at_once(simulate: Simulate) -> None:
    one, two = simulate("dgx-h100"), simulate("gb200-tray-4gpu")
    expected = one.look(), two.look()
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda m=machine: found.append(m.look()))
        for machine in (one, two) * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(expected[0]) == found.count(expected[1]) == 4


def test_a_close_beside_a_call_that_hangs_gives_up(simulate: Simulate) -> None:
    stuck = _Stuck()
    thread = threading.Thread(target=NvmlGpus(stand_in=stuck).close)
    looking = threading.Thread(target=_look_in_vain, args=(NvmlGpus(stand_in=stuck),))
    looking.start()
    assert stuck.entered.wait(60)
    Library().close(patience=0.01)
    thread.start()
    stuck.release.set()
    thread.join()
    looking.join()
    assert len(simulate("t4").look().gpus) == 1


def _look_in_vain(gpus: NvmlGpus) -> None:
    with pytest.raises(HardwareError):
        gpus.inventory()


class _Stuck:
    """A library whose initialisation does not come back before it is released, and then fails."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self.nvmlErrorString = lambda _code: b"stuck"

    def nvmlInitWithFlags(self, _flags: int) -> int:  # noqa: N802 - a C symbol
        self.entered.set()
        assert self.release.wait(60)
        return 999


class _Broken:
    """A library whose initialisation fails with a code."""

    def __init__(self, code: int) -> None:
        self.nvmlInitWithFlags = lambda _flags: code
        self.nvmlErrorString = lambda _code: b"broken"
