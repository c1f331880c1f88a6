"""GPUs that fall ill under a running node process: taints, what the kubelet is told, what stays."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from dragoon.api import names
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.sim.occupants import ConditionState
from dragoon.health.reports import State
from dragoon.kube.port import EVENTS, NODES, Object
from dragoon.prepare.effects import HostEffects
from testbed.waiting import PATIENCE
from tests.scenario.healthbed import FIRST, SECOND, following, hardware, have, taints
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until
from tests.scenario.test_plugin import fetch, published
from tests.unit.publish.nodes import attribute

XID_79 = "XID 79: the GPU has fallen off the bus"
RESET = ConditionState(recovery=1)
ALL_FORMS: dict[str, Any] = {"forms": "whole,shared,mig", "allow_unenforced_shares": True}


async def test_c01_xid_79_on_one_of_eight_taints_that_one_and_the_others_work_on(
    bed: Bed,
) -> None:
    async with bed.kubelet() as kubelet, bed.running() as plugin:
        await published(bed, plugin)
        async with following(kubelet) as follower:
            await until("all are healthy", lambda: len(follower.says(State.HEALTHY)) == 8)
            hardware(bed).raise_xid(0, 79)
            ill = await bed.slices_become("tainted", have((FIRST, names.TAINT_XID)))
            await until("the kubelet is told", lambda: follower.says(State.UNHEALTHY) == {FIRST})
            assert len(follower.says(State.HEALTHY)) == 7
        assert follower.devices[FIRST].message == XID_79
        (taint,) = taints(ill)[FIRST].values()
        assert (taint["value"], taint["effect"]) == ("79", "NoSchedule")
        claim = await bed.allocated_claim("a", SECOND)
        assert len((await kubelet.prepare(DRIVER, [claim]))[claim.uid]) == 1
        _, metrics = await fetch(plugin, "/metrics")
        await until_event(bed, "GpuUnhealthy")
        (problem,) = plugin.state()["health"]
    assert problem["card"] == "0000:11:00.0"
    assert 'dragoon_gpu_events_total{kind="xid",number="79"} 1.0' in metrics
    assert 'dragoon_gpu_verdicts{kind="xid"} 1.0' in metrics
    assert 'dragoon_gpu_verdicts{kind="memory"} 0.0' in metrics


async def until_event(bed: Bed, reason: str) -> Object:
    async with asyncio.timeout(PATIENCE):
        while True:
            for event in (await bed.memory.list(EVENTS)).items:
                if event["reason"] == reason:
                    assert event["regarding"]["kind"] == "Node"
                    return event
            await asyncio.sleep(0.01)


class SlowDisk(HostEffects):
    """A disk that answers about the health of cards only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = threading.Event(), threading.Event()

    def read(self, path: Path) -> bytes | None:
        if path.name == "health.json":
            self.asked.set()
            self.go.wait()
        return super().read(path)


async def test_a_fatal_xid_outlives_the_process_and_the_slices_and_never_is_without_its_taint(
    bed: Bed,
) -> None:
    file = bed.kubelet_root / "plugins" / DRIVER / "health.json"
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        hardware(bed).raise_xid(0, 79)
        await bed.slices_become("tainted", have((FIRST, names.TAINT_XID)))
    assert file.stat().st_mode & 0o777 == 0o600
    disk = SlowDisk()
    async with bed.kubelet():  # one that starts wipes the slices
        await bed.slices_become("wiped", lambda now: not now)
        async with bed.running(effects=disk) as plugin:
            await until("what lasts is asked for", disk.asked.is_set)
            try:
                # That nothing happens can only be seen by looking for a while.
                for _ in range(50):
                    await asyncio.sleep(0.01)
                    assert not await bed.slices()
            finally:
                disk.go.set()
            (first,) = await bed.slices_become("published", bool)
            assert have((FIRST, names.TAINT_XID))((first,))


async def test_c20_after_a_reboot_the_card_is_offered_again(bed: Bed) -> None:
    gpus = bed.gpus()
    proc = gpus.roots.proc
    async with bed.kubelet():
        async with bed.running(gpus, proc_root=str(proc)) as plugin:
            await published(bed, plugin)
            hardware(bed).raise_xid(0, 79)
            await bed.slices_become("tainted", have((FIRST, names.TAINT_XID)))
        hardware(bed).reboot()
        async with bed.running(proc_root=str(proc)):
            await bed.slices_become("free", have())


async def test_after_the_reset_that_the_driver_asks_for_the_card_is_offered_again(
    bed: Bed,
) -> None:
    async with bed.kubelet() as kubelet, bed.running(inventory_seconds=1) as plugin:
        await published(bed, plugin)
        card = hardware(bed)
        card.set_condition(0, RESET)
        card.raise_xid(0, 79)
        await bed.slices_become(
            "tainted twice", have((FIRST, names.TAINT_XID), (FIRST, names.TAINT_RECOVERY))
        )
        card.lose(0)
        await bed.slices_become(
            "lost too", lambda now: names.TAINT_LOST in taints(now).get(FIRST, {})
        )
        card.reset(0)
        card.bring_back(0)
        await bed.slices_become("free", have())
        async with following(kubelet) as follower:
            await until("healthy", lambda: len(follower.says(State.HEALTHY)) == 8)
        await until_event(bed, "GpuRecovered")


async def test_a_tainted_device_stays_listed_and_its_claim_can_be_prepared_and_ended(
    bed: Bed,
) -> None:
    async with bed.kubelet() as kubelet, bed.running() as plugin:
        await published(bed, plugin)
        claim = await bed.allocated_claim("a", FIRST)
        hardware(bed).raise_xid(0, 79)
        ill = await bed.slices_become("tainted", have((FIRST, names.TAINT_XID)))
        assert len(ill[0]["spec"]["devices"]) == 8
        await kubelet.prepare(DRIVER, [claim])
        await kubelet.unprepare(DRIVER, [claim])
        assert len((await bed.slices())[0]["spec"]["devices"]) == 8


async def test_effects_are_a_setting_for_each_kind_lost_cards_included(bed: Bed) -> None:
    effects = "xid=NoExecute,lost=NoExecute,memory-pending=None"
    async with bed.kubelet() as kubelet, bed.running(taint_effects=effects) as plugin:
        await published(bed, plugin)
        card = hardware(bed)
        card.set_condition(2, ConditionState(remap_pending=True, remap_failed=False))
        card.raise_xid(0, 79)
        card.lose(1)
        card.raise_xid(1, 79)
        found = await bed.slices_become(
            "both tainted",
            lambda now: (
                {names.TAINT_XID, names.TAINT_LOST} <= set(taints(now).get(SECOND, {}))
                and all(
                    taint["effect"] == "NoExecute"
                    for keys in taints(now).values()
                    for taint in keys.values()
                )
            ),
        )
        async with following(kubelet) as follower:
            await until("two are ill", lambda: follower.says(State.UNHEALTHY) == {FIRST, SECOND})

            def pending() -> list[State]:
                told = follower.devices.values()
                return [one.state for one in told if "row remap" in one.message]

            await until("a row is to be remapped", lambda: bool(pending()))
            assert pending() == [State.HEALTHY]
    assert set(taints(found)) == {FIRST, SECOND}


async def test_the_taint_of_another_owner_stays_beside_it(bed: Bed) -> None:
    patch = {"status": {"allocatable": {"nvidia.com/gpu": "8"}}}
    await bed.memory.patch(NODES, NODE, patch, subresource="status")
    async with bed.kubelet(), bed.running() as plugin:
        await published(bed, plugin)
        hardware(bed).raise_xid(0, 79)
        found = await bed.slices_become(
            "tainted", lambda now: names.TAINT_XID in taints(now).get(FIRST, {})
        )
    assert set(taints(found)[FIRST]) == {names.TAINT_OTHER_OWNER, names.TAINT_XID}
    assert all(names.TAINT_OTHER_OWNER in keys for keys in taints(found).values())
    assert len(taints(found)) == 8


async def test_c50_without_an_api_server_the_kubelet_is_told_and_the_taint_comes_later(
    bed: Bed,
) -> None:
    async with bed.kubelet() as kubelet, bed.running() as plugin:
        await published(bed, plugin)
        outage = bed.memory.faults.fail(times=None)
        async with following(kubelet) as follower:
            await until("all are healthy", lambda: len(follower.says(State.HEALTHY)) == 8)
            hardware(bed).raise_xid(0, 79)
            await until("the kubelet is told", lambda: follower.says(State.UNHEALTHY) == {FIRST})
            await until("publishing was tried", lambda: outage.hits > 1)
        outage.lift()
        await bed.slices_become("tainted", have((FIRST, names.TAINT_XID)))


async def test_a_link_that_goes_down_changes_the_nvlink_domain_at_once(bed: Bed) -> None:
    gpus = bed.gpus("rtx3090-2way-bridge")
    async with bed.kubelet(), bed.running(gpus) as plugin:
        await published(bed, plugin)
        assert len(await domains(bed)) == 1
        card = hardware(bed)
        for link in range(len(card.read().machine.cards[0].wires)):
            card.drop_link(0, link)
        card.raise_xid(0, 74)  # what a card says when a link fails
        after = await bed.slices_become(
            "no domain", lambda now: not any(_domain(d) for s in now for d in s["spec"]["devices"])
        )
        await until("told", lambda: {one["kind"] for one in plugin.state()["health"]} == {"nvlink"})
        assert not taints(after)
        for link in range(len(card.read().machine.cards[0].wires)):
            card.raise_link(0, link)
        card.raise_xid(0, 74)
        await bed.slices_become(
            "a domain again", lambda now: all(_domain(d) for d in now[0]["spec"]["devices"])
        )


async def domains(bed: Bed) -> set[str]:
    return {_domain(d) for s in await bed.slices() for d in s["spec"]["devices"]} - {None}


def _domain(device: Object) -> Any:
    return attribute(device, "nvlinkDomain")


async def divided(bed: Bed) -> tuple[NvmlGpus, int]:
    """A node whose first card has a MIG instance at its first slice; and the instance's id."""
    gpus = bed.gpus()
    card = hardware(bed)
    card.set_mig_mode(0, enabled=True)
    card.make_by_hand(0, "1g.10gb", 0)
    (instance,) = card.read().cards[0].instances
    return gpus, instance.identity


async def test_an_error_of_one_instance_taints_all_forms_that_share_its_memory_only(
    bed: Bed,
) -> None:
    gpus, instance = await divided(bed)
    async with bed.kubelet() as kubelet, bed.running(gpus, **ALL_FORMS) as plugin:
        await published(bed, plugin)
        await bed.slices_become("shares and instances", lambda now: len(_names(now)) > 16)
        hardware(bed).raise_xid(0, 48, gpu_instance=instance)
        found = await bed.slices_become(
            "tainted", lambda now: any(names.TAINT_XID in keys for keys in taints(now).values())
        )
        hit = {name for name, keys in taints(found).items() if names.TAINT_XID in keys}
        async with following(kubelet) as follower:
            await until("told", lambda: hit <= follower.says(State.UNHEALTHY))
            assert follower.says(State.UNHEALTHY) == hit
    mine = {name for name in _names(found) if name.startswith(FIRST)}
    assert f"{FIRST}-mig-1g10gb-0" in hit
    assert hit < mine
    assert f"{FIRST}-mig-1g10gb-3" in mine - hit


async def test_an_error_of_a_divided_card_as_a_whole_taints_all_its_forms(bed: Bed) -> None:
    async with bed.kubelet(), bed.running(**ALL_FORMS) as plugin:
        await published(bed, plugin)
        await bed.slices_become("shares and instances", lambda now: len(_names(now)) > 16)
        hardware(bed).raise_xid(0, 79)
        found = await bed.slices_become("tainted", lambda now: FIRST in taints(now))
    mine = {name for name in _names(found) if name.startswith(FIRST)}
    assert set(taints(found)) == mine
    assert {f"{FIRST}-shared", f"{FIRST}-mig-1g10gb-0"} < mine


def _names(slices: tuple[Object, ...]) -> list[str]:
    return [d["name"] for s in slices for d in s["spec"].get("devices") or ()]
