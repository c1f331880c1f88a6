import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from dragoon.errors import DragoonError, HardwareError
from dragoon.gpu.model import Inventory
from dragoon.gpu.port import FixedGpus
from dragoon.gpu.watching import InventoryWatch

ONE, TWO = Inventory(driver_version="1"), Inventory(driver_version="2")


class Gpus(FixedGpus):
    """Counts looks; fails with `failure`; waits at `gate` while it is shut."""

    def __init__(self) -> None:
        super().__init__(ONE)
        self.failure: Exception | None = None
        self.looks = 0
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def inventory(self) -> Inventory:
        self.looks += 1
        found = self.found
        self.entered.release()
        assert self.gate.wait(60)
        if self.failure is not None:
            raise self.failure
        return found


async def entered(gpus: Gpus) -> None:
    await asyncio.to_thread(gpus.entered.acquire)


@asynccontextmanager
async def running(watch: InventoryWatch) -> AsyncIterator[None]:
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_look_becomes_the_current_inventory() -> None:
    watch = InventoryWatch(Gpus())
    assert watch.current is None
    assert await watch.look() == ONE
    assert watch.current == ONE


async def test_callers_at_one_time_share_a_look() -> None:
    gpus = Gpus()
    watch = InventoryWatch(gpus)
    assert await asyncio.gather(*(watch.look() for _ in range(10))) == [ONE] * 10
    assert gpus.looks == 1


async def test_a_look_begins_after_the_call_and_not_before() -> None:
    gpus = Gpus()
    watch = InventoryWatch(gpus)
    gpus.gate.clear()
    early = asyncio.create_task(watch.look())
    await entered(gpus)
    gpus.found = TWO  # the look in flight has read the hardware already
    late = [asyncio.create_task(watch.look()) for _ in range(3)]
    await asyncio.sleep(0)
    gpus.gate.set()
    assert await early == ONE
    assert await asyncio.gather(*late) == [TWO] * 3
    assert gpus.looks == 2


async def test_a_failing_look_keeps_the_last_inventory_and_tells_the_error() -> None:
    gpus = Gpus()
    reports: list[DragoonError | None] = []
    watch = InventoryWatch(gpus, report=reports.append)
    await watch.look()
    gpus.failure = HardwareError("broken", hint="")
    for _ in range(2):
        with pytest.raises(HardwareError, match="broken"):
            await watch.look()
    assert (watch.current, watch.error) == (ONE, gpus.failure)
    gpus.failure = None
    await watch.look()
    assert watch.error is None
    assert [str(report) for report in reports] == ["broken", "None"]


async def test_subscribers_hear_of_changes_only() -> None:
    gpus = Gpus()
    watch = InventoryWatch(gpus)
    heard: list[Inventory] = []
    stop = watch.subscribe(heard.append)
    await watch.look()
    await watch.look()
    gpus.found = TWO
    await watch.look()
    assert heard == [ONE, TWO]
    stop()
    gpus.found = ONE
    await watch.look()
    assert heard == [ONE, TWO]


async def test_run_looks_at_once_and_again_and_again() -> None:
    gpus = Gpus()
    async with running(InventoryWatch(gpus, interval=0.001)):
        for _ in range(3):
            await entered(gpus)
    assert gpus.looks >= 3


async def test_run_looks_when_somebody_wants_it() -> None:
    gpus = Gpus()
    watch = InventoryWatch(gpus, interval=3600, pause=0.0)
    async with running(watch):
        await entered(gpus)
        watch.want_look()
        await entered(gpus)
    assert gpus.looks == 2


async def test_a_look_that_is_wanted_for_ever_comes_no_more_often_than_the_pause() -> None:
    gpus, now = Gpus(), asyncio.get_running_loop().time
    watch = InventoryWatch(gpus, interval=3600, pause=0.05)
    began = now()
    async with running(watch):
        while gpus.looks < 5:
            watch.want_look()
            await asyncio.sleep(0.001)
    assert now() - began >= 4 * 0.05


async def test_run_survives_failing_looks() -> None:
    gpus = Gpus()
    gpus.failure = HardwareError("broken")
    watch = InventoryWatch(gpus, interval=0.001)
    recovered = asyncio.Event()
    watch.subscribe(lambda _: recovered.set())
    async with running(watch):
        await entered(gpus)
        await entered(gpus)
        gpus.failure = None
        await recovered.wait()
    assert watch.current == ONE


async def test_a_look_that_hangs_is_told_and_ends_when_the_driver_answers() -> None:
    gpus = Gpus()
    told = asyncio.Event()
    watch = InventoryWatch(gpus, patience=0.01, report=lambda _: told.set())
    gpus.gate.clear()
    look = asyncio.create_task(watch.look())
    await told.wait()
    assert watch.error is not None
    assert "has not answered" in watch.error.message
    assert not look.done()
    gpus.gate.set()
    assert await look == ONE
    assert watch.error is None


async def test_a_caller_that_gives_up_does_not_stop_the_look_of_others() -> None:
    gpus = Gpus()
    watch = InventoryWatch(gpus)
    gpus.gate.clear()
    first = asyncio.create_task(watch.look())
    second = asyncio.create_task(watch.look())
    await entered(gpus)
    first.cancel()
    gpus.gate.set()
    assert await second == ONE
    assert replace(ONE) == watch.current


async def test_an_unexpected_exception_reaches_the_caller() -> None:
    gpus = Gpus()
    gpus.failure = RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug"):
        await InventoryWatch(gpus).look()
