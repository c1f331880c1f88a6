"""Two processes of `dragoon plugin` side by side, as a DaemonSet with surge 1 has them for a while."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.errors import KubeletError
from dragoon.kube.port import CLAIMS
from dragoon.kube.serving import EmbeddedApi
from dragoon.kubelet.standin import KubeletStandIn
from testbed.waiting import PATIENCE
from tests.scenario.pluginbed import DRIVER, Bed, until
from tests.scenario.test_plugin_process import command

OLD, NEW = "0a000000-old", "0b000000-new"


@pytest.fixture
async def api(bed: Bed) -> AsyncIterator[EmbeddedApi]:
    served = EmbeddedApi(bed.memory)
    await served.start()
    yield served
    await served.stop()


@asynccontextmanager
async def plugin(bed: Bed, api: EmbeddedApi, uid: str) -> AsyncIterator[Process]:
    """One plugin pod."""
    arguments = command(
        bed, api, "--simulate", "dgx-h100", "--simulate-state", str(bed.root / "gpus.json"),
        "--proc-root", str(bed.root / "gpus.json.tree/proc"), "--pod-uid", uid,
    )  # fmt: skip
    with (bed.root / f"log-{uid}").open("wb") as out:
        process = await asyncio.create_subprocess_exec(*arguments, stdout=out, stderr=out)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@dataclass
class Load:
    """Pods that come and go, one after another, each with a card of its own."""

    bed: Bed
    kubelet: KubeletStandIn
    devices: list[str]
    served: int = 0
    failures: list[str] = field(default_factory=list)
    again: bool = False
    """Whether the kubelet asks again after a call that failed."""
    here: dict[str, ClaimRef] = field(default_factory=dict)
    running: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """With every card at once, until `end`."""
        self.running = [asyncio.create_task(self._one_after_another(d)) for d in self.devices]

    async def end(self) -> None:
        """The pods that are here now end too."""
        for task in self.running:
            task.cancel()
        await asyncio.wait(self.running)
        for claim in self.here.values():
            await self._call("unprepare", claim)

    async def more(self, count: int) -> None:
        """Returns when so many more pods have come and gone."""
        wanted = self.served + count
        await until("pods come and go", lambda: self.served >= wanted or bool(self.failures))

    async def _one_after_another(self, device: str) -> None:
        number = 0
        while True:
            claim = await self.bed.allocated_claim(f"load-{device}-{number}", device)
            self.here[device] = claim
            await self._call("prepare", claim)
            await self._call("unprepare", claim)
            await self.bed.memory.delete(CLAIMS, claim.name, namespace=claim.namespace)
            self.served += 1
            number += 1

    async def _call(self, name: str, claim: ClaimRef) -> None:
        while True:
            try:
                await getattr(self.kubelet, name)(DRIVER, [claim])
            except KubeletError as error:
                if self.again:
                    await asyncio.sleep(0.05)
                    continue
                self.failures.append(f"{name}: {error}")
            return


async def goes_to(kubelet: KubeletStandIn, uid: str) -> None:
    await kubelet.wait_registered(DRIVER, lambda service: uid in str(service))


def left_on(bed: Bed) -> set[str]:
    folders = (bed.cdi_root, bed.kubelet_root / "plugins" / DRIVER / "journal")
    return {path.name for folder in folders for path in folder.iterdir()}


async def devices_of(bed: Bed) -> list[str]:
    slices = await bed.slices_become("published", bool)
    return sorted(one["name"] for found in slices for one in found["spec"]["devices"])


async def test_an_update_with_both_pods_at_once_fails_no_pod_and_disturbs_none(
    bed: Bed, api: EmbeddedApi
) -> None:
    async with (
        plugin(bed, api, OLD) as old,
        bed.kubelet() as kubelet,
        asyncio.timeout(3 * PATIENCE),
    ):
        await kubelet.wait_registered(DRIVER)
        first, second, *rest = await devices_of(bed)
        before = {one["metadata"]["uid"] for one in await bed.slices()}
        staying = [
            await bed.allocated_claim("stays-1", first),
            await bed.allocated_claim("stays-2", second),
        ]
        answers = [await kubelet.prepare(DRIVER, [claim]) for claim in staying]
        specs = {path: path.read_bytes() for path in bed.cdi_root.iterdir()}
        load = Load(bed, kubelet, rest[:3])
        load.start()
        await load.more(6)

        async with plugin(bed, api, NEW) as new:
            await goes_to(kubelet, NEW)
            await load.more(6)
            old.send_signal(signal.SIGTERM)
            assert await old.wait() == 0
            await load.more(6)

            await load.end()
            assert load.failures == []
            assert {p: p.read_bytes() for p in specs} == specs
            for claim, answer in zip(staying, answers, strict=True):
                assert await kubelet.prepare(DRIVER, [claim]) == answer
                await kubelet.unprepare(DRIVER, [claim])
            assert {one["metadata"]["uid"] for one in await bed.slices()} == before
            new.send_signal(signal.SIGTERM)
            assert await new.wait() == 0
    assert left_on(bed) == set()
    assert "Traceback" not in "".join(log.read_text() for log in bed.root.glob("log-*"))


async def test_the_older_one_killed_in_mid_update_leaves_nothing_half_done(
    bed: Bed, api: EmbeddedApi
) -> None:
    async with (
        plugin(bed, api, OLD) as old,
        bed.kubelet() as kubelet,
        asyncio.timeout(3 * PATIENCE),
    ):
        await kubelet.wait_registered(DRIVER)
        load = Load(bed, kubelet, (await devices_of(bed))[:3], again=True)
        load.start()
        await load.more(6)
        async with plugin(bed, api, NEW):
            await goes_to(kubelet, NEW)
            old.kill()
            await old.wait()
            await load.more(9)
            await load.end()
            assert left_on(bed) == set()


async def test_a_second_process_waits_for_a_card_that_the_first_one_has_given_out(
    bed: Bed, api: EmbeddedApi
) -> None:
    async with plugin(bed, api, OLD), bed.kubelet() as kubelet, asyncio.timeout(3 * PATIENCE):
        await kubelet.wait_registered(DRIVER)
        device, *_ = await devices_of(bed)
        first = await bed.allocated_claim("first", device)
        await kubelet.prepare(DRIVER, [first])
        async with plugin(bed, api, NEW):
            await goes_to(kubelet, NEW)
            second = await bed.allocated_claim("second", device)
            asked = asyncio.create_task(kubelet.prepare(DRIVER, [second]))
            log = bed.root / f"log-{NEW}"
            await until("it waits", lambda: '"waiting"' in log.read_text())
            assert not asked.done()
            await kubelet.unprepare(DRIVER, [first])
            assert await asked
