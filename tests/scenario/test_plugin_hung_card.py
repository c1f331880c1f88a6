"""A node process one of whose cards hangs the calls that ask it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from dragoon.api import names
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.nvml.walking import Patience
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import Effect, Fault
from tests.scenario.healthbed import have, taints
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until
from tests.scenario.test_plugin import published

FIRST, SECOND, THIRD = (f"gpu-0000-{bus}-00-0" for bus in ("11", "13", "15"))


@asynccontextmanager
async def looked_at(hardware: Hardware) -> AsyncIterator[None]:
    """A card has something to say again and again, after which all are looked at and asked."""

    async def say() -> None:
        while True:
            hardware.raise_xid(1, 74)
            await asyncio.sleep(0.1)

    saying = asyncio.create_task(say())
    try:
        yield
    finally:
        saying.cancel()
        await asyncio.wait({saying})


@contextmanager
def hanging(hardware: Hardware, slot: int) -> Iterator[None]:
    """Neither a look at the card nor a question how it is comes back before the block ends."""
    symbols = ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetTotalEccErrors")
    for symbol in symbols:
        hardware.fail(Fault(symbol, Effect.HANG, slot=slot))
    try:
        yield
    finally:
        for symbol in symbols:
            hardware.lift(symbol)


async def test_a_card_that_hangs_is_tainted_and_the_others_go_on(bed: Bed) -> None:
    machine = Hardware.installed(bed.root / "gpus.json", find_machine("l40s-4way-pcie"), NODE)
    gpus = NvmlGpus(
        machine.roots, stand_in=SimulatedLibrary(machine), patience=Patience(card=2.0, grace=0.1)
    )
    first, second = [await bed.allocated_claim(name[4:], name) for name in (FIRST, SECOND)]
    async with bed.kubelet() as kubelet, bed.running(gpus) as plugin, looked_at(machine):
        await published(bed, plugin)
        await kubelet.prepare(DRIVER, [first])
        with hanging(machine, 0):
            found = await bed.slices_become("tainted", have((FIRST, names.TAINT_LOST)))
            (taint,) = taints(found)[FIRST].values()
            assert (taint["value"], taint["effect"]) == ("has-not-answered-for-2-s", "NoSchedule")
            assert plugin.state()["hardware"] is None
            machine.lose(2)
            lost = have((FIRST, names.TAINT_LOST), (THIRD, names.TAINT_LOST))
            await bed.slices_become("another one is seen to be lost", lost)
            assert len((await kubelet.prepare(DRIVER, [second]))[second.uid]) == 1
            await kubelet.unprepare(DRIVER, [first])
            machine.bring_back(2)
            await bed.slices_become("it is seen to be back", have((FIRST, names.TAINT_LOST)))
        await bed.slices_become("all are well", have())
        await until("nothing is said of it", lambda: not plugin.state()["health"])
