"""The node process as a whole, on real sockets, a simulated driver library and a small API store."""

import asyncio
import contextlib
import re
import threading
from collections.abc import Sequence

import aiohttp
import pytest

from dragoon.app.plugin import Plugin
from dragoon.errors import DriverMissingError, KubeletError
from dragoon.gpu.model import Inventory
from dragoon.gpu.port import FixedGpus, Gpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.kube.port import NODES, SLICES, Object
from dragoon.publish.slices import render
from testbed.waiting import PATIENCE
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until

FIRST = "gpu-0000-11-00-0"
SECOND = "gpu-0000-13-00-0"


async def fetch(plugin: Plugin, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{plugin.endpoint.port}{path}") as answer,
    ):
        return answer.status, await answer.text()


async def scraped(plugin: Plugin, line: str) -> str:
    """The metrics, once they say this: a call is counted in a moment after its answer."""
    text = ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while line not in text:
                _, text = await fetch(plugin, "/metrics")
    assert line in text
    return text


async def published(bed: Bed, plugin: Plugin) -> None:
    await until("ready", lambda: not plugin.not_ready())
    assert await bed.slices()


async def test_the_node_publishes_what_the_devices_command_shows(bed: Bed) -> None:
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        (found,) = await bed.slices()
    (expected,) = render(bed.gpus().inventory(), node=NODE, driver=DRIVER)
    assert found["spec"] == expected["spec"]
    assert found["metadata"]["ownerReferences"][0]["name"] == NODE


async def test_nothing_is_published_before_the_kubelet_has_registered_us(bed: Bed) -> None:
    async with bed.running() as plugin:
        await until("the API was asked", lambda: len(bed.memory.faults.calls) > 2)
        assert not await bed.slices()
        assert any("not registered" in reason for reason in plugin.not_ready())
        assert (await fetch(plugin, "/readyz"))[0] == 503
        async with bed.kubelet():
            await published(bed, plugin)
            assert await fetch(plugin, "/readyz") == (200, "ok\n")


async def test_what_stays_is_loaded_before_the_kubelet_is_served(bed: Bed) -> None:
    plugin = Plugin(bed.config(), gpus=bed.gpus(), api=bed.memory)
    stop = asyncio.Event()
    seen: list[tuple[object, bool]] = []

    def loaded() -> None:
        seen.append((plugin.state()["gpus"], (bed.kubelet_root / "plugins_registry").exists()))
        stop.set()

    await plugin.run(stop, loaded=loaded)
    assert seen == [(8, False)]


async def test_a_claim_is_prepared_and_taken_back_and_both_are_counted(bed: Bed) -> None:
    async with bed.kubelet() as kubelet, bed.running() as plugin:
        await kubelet.wait_registered(DRIVER)
        claim = await bed.allocated_claim("a", FIRST)
        devices = await kubelet.prepare(DRIVER, [claim])
        assert [device.device for device in devices[claim.uid]] == [FIRST]
        assert len(list(bed.cdi_root.glob("*.json"))) == 1
        await kubelet.unprepare(DRIVER, [claim])
        assert not list(bed.cdi_root.glob("*.json"))
        await scraped(plugin, 'dragoon_prepare_total{result="ok"} 1.0')
        metrics = await scraped(plugin, 'dragoon_unprepare_total{result="ok"} 1.0')
    assert 'dragoon_gpus{state="working"} 8.0' in metrics
    assert re.search(r"^dragoon_registered 1\.0$", metrics, re.MULTILINE)


async def test_a_device_that_is_not_here_is_refused_and_counted_by_its_code(bed: Bed) -> None:
    async with bed.kubelet() as kubelet, bed.running() as plugin:
        await kubelet.wait_registered(DRIVER)
        claim = await bed.allocated_claim("a", "gpu-0000-ff-00-0")
        with pytest.raises(KubeletError, match="UnknownDevice"):
            await kubelet.prepare(DRIVER, [claim])
        await scraped(plugin, 'dragoon_prepare_total{result="UnknownDevice"} 1.0')


@pytest.mark.parametrize("folder", ["plugins_registry", f"plugins/{DRIVER}"])
async def test_liveness_calls_our_own_sockets(bed: Bed, folder: str) -> None:
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        assert await fetch(plugin, "/healthz") == (200, "ok\n")
        (socket,) = (bed.kubelet_root / folder).glob("*.sock")
        status = 200
        while status == 200:  # A socket that is missing is put back, at times before we ask.
            socket.unlink(missing_ok=True)
            status, _ = await fetch(plugin, "/healthz")
        assert status == 503


async def test_the_debug_state_shows_what_the_process_knows(bed: Bed) -> None:
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        state = plugin.state()
        status, _ = await fetch(plugin, "/debug/state")
    assert status == 200
    assert (state["registered"], state["gpus"], state["lost"]) == (True, 8, [])
    assert state["slices"]["devices"] == 8


async def test_c50_without_an_api_server_it_starts_and_publishes_when_there_is_one(
    bed: Bed,
) -> None:
    outage = bed.memory.faults.fail(times=None)
    async with bed.running() as plugin:
        await until("the API was tried", lambda: outage.hits > 2)
        outage.lift()
        async with bed.kubelet():
            await published(bed, plugin)


async def test_c50_a_prepare_waits_inside_the_call_for_an_api_server_that_is_away(
    bed: Bed,
) -> None:
    claim = await bed.allocated_claim("a", FIRST)
    async with bed.kubelet() as kubelet, bed.running():
        await kubelet.wait_registered(DRIVER)
        outage = bed.memory.faults.fail(times=None, verb="get")
        call = asyncio.create_task(kubelet.prepare(DRIVER, [claim]))
        await until("the claim was read in vain", lambda: outage.hits > 0)
        outage.lift()
        assert [d.device for d in (await call)[claim.uid]] == [FIRST]


async def test_after_a_stop_slices_and_prepared_claims_stay_for_the_next_process(
    bed: Bed,
) -> None:
    claim = await bed.allocated_claim("a", FIRST)
    async with bed.kubelet() as kubelet:
        async with bed.running() as plugin:
            await published(bed, plugin)
            await kubelet.prepare(DRIVER, [claim])
        before = await bed.slices()
        assert before
        specs = {path: path.read_bytes() for path in bed.cdi_root.glob("*.json")}
        assert specs
        writes = len(_writes(bed))
        async with bed.running() as plugin:
            await published(bed, plugin)
            assert await bed.slices() == before
            assert {path: path.read_bytes() for path in bed.cdi_root.glob("*.json")} == specs
            assert len(_writes(bed)) == writes
            await kubelet.unprepare(DRIVER, [claim])
    assert not list(bed.cdi_root.glob("*.json"))


async def test_after_a_stop_none_of_our_sockets_is_left(bed: Bed) -> None:
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        assert list(bed.kubelet_root.rglob("*.sock"))
    assert not list(bed.kubelet_root.rglob("*.sock"))


async def test_c16_slices_that_a_restarted_kubelet_wipes_come_back(bed: Bed) -> None:
    async with bed.running() as plugin:
        async with bed.kubelet():
            await published(bed, plugin)
            (before,) = await bed.slices()
        async with bed.kubelet() as kubelet:
            await kubelet.wait_registered(DRIVER)
            after = await bed.slices_become(
                "published anew", lambda now: bool(now) and now != (before,)
            )
    assert after[0]["metadata"]["uid"] != before["metadata"]["uid"]
    assert after[0]["spec"]["devices"] == before["spec"]["devices"]


async def test_a_card_that_is_lost_while_we_run_is_tainted_at_the_next_look(bed: Bed) -> None:
    hardware = Hardware(bed.root / "gpus.json")
    async with bed.kubelet(), bed.running(inventory_seconds=1) as plugin:
        await published(bed, plugin)
        hardware.lose(0)
        await until("the loss is known", lambda: plugin.state()["lost"] == ["0000:11:00.0"])
        await bed.slices_become(
            "the card is tainted", lambda now: "taints" in now[0]["spec"]["devices"][0]
        )


async def test_a_label_on_the_node_of_a_running_plugin_changes_the_forms(bed: Bed) -> None:
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        assert offered(await bed.slices()) == {"gpu"}
        await until("the Node is watched", lambda: _watches_node(bed))
        await bed.label("dragoon.dev/forms", "whole_mig")
        await bed.slices_become("MIG is offered", lambda now: offered(now) == {"gpu", "mig"})
        assert plugin.state()["formsFrom"] == "label"


async def test_c50_a_label_that_was_set_while_the_api_server_was_away_counts(bed: Bed) -> None:
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        await until("the Node is watched", lambda: _watches_node(bed))
        outage = bed.memory.faults.fail(times=None, when=lambda call: call.verb != "patch")
        bed.memory.faults.cut_watches()
        await until("the server is missed", lambda: outage.hits > 1)
        await bed.label("dragoon.dev/forms", "whole_mig")
        bed.memory.compact()
        outage.lift()
        await bed.slices_become("MIG is offered", lambda now: offered(now) == {"gpu", "mig"})


async def test_a_node_without_gpus_publishes_one_empty_slice(bed: Bed) -> None:
    async with bed.kubelet(), bed.running(FixedGpus(Inventory())) as plugin:
        await published(bed, plugin)
        (found,) = await bed.slices()
    assert not found["spec"].get("devices")
    assert found["spec"]["pool"]["resourceSliceCount"] == 1


class NoDriver:
    """A node on which nobody installed the driver."""

    def inventory(self) -> Inventory:
        raise DriverMissingError("NVML: library not found")

    def close(self) -> None:
        """Nothing is open."""


async def test_without_a_driver_it_ends_with_a_hint_and_leaves_nothing(bed: Bed) -> None:
    calls = len(bed.memory.faults.calls)
    plugin = Plugin(bed.config(), gpus=NoDriver(), api=bed.memory)
    with pytest.raises(DriverMissingError) as caught:
        await plugin.run(asyncio.Event())
    assert "install the NVIDIA driver" in caught.value.hint
    assert not list(bed.kubelet_root.iterdir())
    assert len(bed.memory.faults.calls) == calls


class LateDriver:
    """A driver that is installed while the plugin runs."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self.installed = False

    def inventory(self) -> Inventory:
        if not self.installed:
            raise DriverMissingError("NVML: library not found")
        return self._gpus.inventory()

    def close(self) -> None:
        self._gpus.close()


async def test_it_waits_for_a_driver_where_it_is_told_to_and_is_ready_meanwhile(bed: Bed) -> None:
    late = LateDriver(bed.gpus())
    async with bed.kubelet() as kubelet:
        async with bed.running(late, without_driver="wait", inventory_seconds=1.0) as plugin:
            await kubelet.wait_registered(DRIVER)
            await until("it is ready", lambda: not plugin.not_ready())
            assert not await bed.slices()
            late.installed = True
            await until("its GPUs are published", lambda: bool(_writes(bed)))
            await until("it is ready with them", lambda: not plugin.not_ready())
        (found,) = await bed.slices()
    assert len(found["spec"]["devices"]) == 8


class Hung:
    """A driver that answers only when it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def inventory(self) -> Inventory:
        self.go.wait()
        return Inventory()

    def close(self) -> None:
        self.go.set()


async def test_a_driver_that_hangs_at_the_start_does_not_keep_claims_from_ending(
    bed: Bed,
) -> None:
    claim = await bed.allocated_claim("a", FIRST)
    async with bed.kubelet() as kubelet:
        async with bed.running():
            await kubelet.wait_registered(DRIVER)
            await kubelet.prepare(DRIVER, [claim])
        hung = Hung()
        async with bed.running(hung, first_look=0.05):
            await kubelet.wait_registered(DRIVER)
            await kubelet.unprepare(DRIVER, [claim])
            hung.go.set()
    assert not list(bed.cdi_root.glob("*.json"))


def offered(slices: Sequence[Object]) -> set[str]:
    """The types of all devices."""
    return {
        device["attributes"]["type"]["string"]
        for slice_ in slices
        for device in slice_["spec"].get("devices", ())
    }


def _watches_node(bed: Bed) -> bool:
    calls = bed.memory.faults.calls
    return any(call.verb == "watch" and call.resource == NODES for call in calls)


def _writes(bed: Bed) -> list[str]:
    verbs = {"create", "replace", "patch", "delete"}
    return [
        call.verb
        for call in bed.memory.faults.calls
        if call.verb in verbs and call.resource == SLICES
    ]
