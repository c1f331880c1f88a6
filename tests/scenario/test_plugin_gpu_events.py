"""Events of GPUs under a running node process that say nothing about a card of this node."""

import pytest
from structlog.testing import capture_logs

from dragoon.api import names
from dragoon.app.plugin import Plugin
from dragoon.errors import KubeletError
from dragoon.gpu.condition import EventKind, GpuEvent
from dragoon.gpu.condition_memory import MemoryConditions, MemoryEvents
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.port import FixedGpus
from dragoon.health.watching import Sources
from dragoon.kubelet.client import open_channel, watch_health
from dragoon.kubelet.healthstream import HEALTH_VERSIONS
from tests.scenario.healthbed import SECOND, hardware, have, taints
from tests.scenario.pluginbed import DRIVER, Bed, until
from tests.scenario.test_plugin import fetch, published


async def test_what_an_application_did_changes_nothing(bed: Bed) -> None:
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        before = await bed.slices()
        hardware(bed).raise_xid(0, 31)
        hardware(bed).raise_xid(1, 62)
        after = await bed.slices_become("the other one", have((SECOND, names.TAINT_XID)))
        _, metrics = await fetch(plugin, "/metrics")
    assert 'dragoon_gpu_events_total{kind="xid",number="31"} 1.0' in metrics
    devices = [d for d in before[0]["spec"]["devices"] if d["name"] != SECOND]
    assert [d for d in after[0]["spec"]["devices"] if d["name"] != SECOND] == devices


async def test_an_event_of_an_unknown_card_is_counted_and_taints_nobody(bed: Bed) -> None:
    events = MemoryEvents()
    async with bed.kubelet(), bed.running(health=Sources(events, MemoryConditions())) as plugin:
        await published(bed, plugin)
        await until("somebody listens", lambda: events.polled > 0)
        nowhere = GpuEvent(EventKind.XID, None, 79)
        events.raise_(nowhere, nowhere, GpuEvent(EventKind.XID, PciAddress(0, 0xFE, 0), 79))
        await until("all are counted", lambda: has_counted(plugin, 3))
        assert not plugin.state()["health"]
    assert not taints(await bed.slices())


async def test_events_of_unknown_cards_without_end_are_counted_and_a_few_are_logged(
    bed: Bed,
) -> None:
    events = MemoryEvents()
    async with bed.kubelet(), bed.running(health=Sources(events, MemoryConditions())) as plugin:
        await published(bed, plugin)
        await until("somebody listens", lambda: events.polled > 0)
        with capture_logs() as logs:
            events.raise_(*(GpuEvent(EventKind.XID, None, number) for number in range(500)))
            await until("all are counted", lambda: has_counted(plugin, 500))
    told = [line for line in logs if line["event"] == "event of an unknown GPU"]
    assert 0 < len(told) < 50


async def has_counted(plugin: Plugin, unknown: int) -> bool:
    _, metrics = await fetch(plugin, "/metrics")
    return f"events_unknown_total {unknown}.0" in metrics


async def test_a_process_without_events_tells_the_kubelet_of_no_stream(bed: Bed) -> None:
    async with bed.kubelet() as kubelet, bed.running(FixedGpus(Inventory())) as plugin:
        await published(bed, plugin)
        async with open_channel(kubelet.calls_go_to(DRIVER)) as channel:
            with pytest.raises(KubeletError, match="UNIMPLEMENTED"):
                await anext(watch_health(channel, HEALTH_VERSIONS[0]))
