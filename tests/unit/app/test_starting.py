"""What ends the start of a node process, and what does not."""

import threading
from pathlib import Path
from typing import Any

import pytest

from dragoon.app.config import PluginConfig
from dragoon.app.starting import check_kubelet_root, look_first, waits_for_driver
from dragoon.errors import DriverMissingError, HardwareError, KubeletError
from dragoon.gpu.model import Inventory
from dragoon.gpu.watching import InventoryWatch


class Driver:
    """Answers what it is told, or raises it; with `hangs` only when it is let go."""

    def __init__(self, answer: Inventory | Exception, *, hangs: bool = False) -> None:
        self.answer = answer
        self.go = threading.Event()
        if not hangs:
            self.go.set()

    def inventory(self) -> Inventory:
        self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.go.set()


def watch(driver: Driver) -> InventoryWatch:
    return InventoryWatch(driver, 60.0)


def config(**changes: Any) -> PluginConfig:
    return PluginConfig(node_name="n", **changes)


def test_a_kubelet_root_that_is_no_folder_is_named(tmp_path: Path) -> None:
    check_kubelet_root(config(kubelet_root=str(tmp_path)))
    with pytest.raises(KubeletError, match="none is not a folder"):
        check_kubelet_root(config(kubelet_root=str(tmp_path / "none")))


async def test_a_missing_driver_ends_the_start_unless_it_is_waited_for() -> None:
    looking = watch(Driver(DriverMissingError("NVML: library not found")))
    with pytest.raises(DriverMissingError):
        await look_first(config(), looking, 60.0)
    assert not waits_for_driver(config(), looking)
    patient = config(without_driver="wait")
    await look_first(patient, looking, 60.0)
    assert waits_for_driver(patient, looking)


async def test_a_driver_that_was_waited_for_and_came_is_not_waited_for() -> None:
    driver = Driver(DriverMissingError("NVML: library not found"))
    looking, patient = watch(driver), config(without_driver="wait")
    await look_first(patient, looking, 60.0)
    driver.answer = Inventory()
    await look_first(patient, looking, 60.0)
    assert not waits_for_driver(patient, looking)


@pytest.mark.parametrize(
    "error",
    [HardwareError("GPU is lost"), OSError(107, "Transport endpoint is not connected")],
    ids=["in our words", "a surprise"],
)
async def test_a_driver_that_fails_does_not_keep_claims_from_ending(error: Exception) -> None:
    failing = watch(Driver(error))
    await look_first(config(), failing, 60.0)
    assert failing.current is None


async def test_a_driver_that_hangs_does_not_keep_claims_from_ending() -> None:
    hanging = Driver(Inventory(), hangs=True)
    looking = watch(hanging)
    await look_first(config(), looking, 0.01)
    assert looking.current is None
    hanging.close()
