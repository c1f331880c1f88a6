import asyncio
import threading

import pytest

from dragoon.app.freshness import FreshInventory
from dragoon.errors import HardwareError
from dragoon.gpu.model import Inventory
from dragoon.gpu.watching import InventoryWatch


class Counting:
    """GPUs that count looks, and can fail or hang on demand."""

    def __init__(self) -> None:
        self.looks = 0
        self.error: HardwareError | None = None
        self.answer = threading.Event()
        self.answer.set()

    def inventory(self) -> Inventory:
        self.looks += 1
        self.answer.wait()
        if self.error is not None:
            raise self.error
        return Inventory(driver_version=str(self.looks))

    def close(self) -> None:
        self.answer.set()


async def test_many_prepares_in_a_burst_share_one_look() -> None:
    gpus = Counting()
    fresh = FreshInventory(InventoryWatch(gpus), fresh=60)
    found = [await fresh() for _ in range(20)]
    assert gpus.looks == 1
    assert set(found) == {Inventory(driver_version="1")}


async def test_an_inventory_that_is_too_old_is_renewed() -> None:
    gpus = Counting()
    fresh = FreshInventory(InventoryWatch(gpus), fresh=0)
    await fresh()
    assert (await fresh()).driver_version == "2"


async def test_a_driver_that_hangs_does_not_cost_the_others_their_pods() -> None:
    gpus = Counting()
    fresh = FreshInventory(InventoryWatch(gpus), fresh=0, patience=0.02)
    before = await fresh()
    gpus.answer.clear()
    try:
        assert await fresh() == before
    finally:
        gpus.close()


async def test_an_error_that_the_driver_answers_is_not_passed_over() -> None:
    gpus = Counting()
    fresh = FreshInventory(InventoryWatch(gpus), fresh=0)
    await fresh()
    gpus.error = HardwareError("the library failed")
    with pytest.raises(HardwareError, match="the library failed"):
        await fresh()


async def test_before_the_first_answer_it_waits_longer() -> None:
    gpus = Counting()
    gpus.answer.clear()
    fresh = FreshInventory(InventoryWatch(gpus), patience=0.0)
    waiting = asyncio.create_task(fresh())
    while not gpus.looks:  # noqa: ASYNC110 - a thread begins the look
        await asyncio.sleep(0.001)
    assert not waiting.done()
    gpus.close()
    assert (await waiting).driver_version == "1"


async def test_a_driver_that_hangs_from_the_start_is_told() -> None:
    gpus = Counting()
    gpus.answer.clear()
    fresh = FreshInventory(InventoryWatch(gpus), first_patience=0.01)
    try:
        with pytest.raises(HardwareError, match="does not answer") as caught:
            await fresh()
    finally:
        gpus.close()
    assert caught.value.retryable
