"""Pods whose claim a node refuses for good: evicted where the administrator wants that."""

from dragoon.api.device_status import EVICT, REPORT
from dragoon.kube.port import CLAIMS, PODS
from tests.scenario.gang.bed import SPACE, Bed
from tests.scenario.gang.refusals import evictions, fails_to_prepare, is_woken, refuse
from tests.scenario.pluginbed import until


async def pods(bed: Bed) -> set[str]:
    return {one["metadata"]["name"] for one in (await bed.api.list(PODS)).items}


async def test_a_pod_with_an_owner_is_evicted_and_its_sibling_only_after_a_pause() -> None:
    async with Bed(nodes=2, gpus=2).up() as bed, bed.controller():
        await bed.job("j", 2)
        await bed.phase("j", "Running")
        await refuse(bed, "j-0", EVICT)
        await until("it is evicted", lambda: evictions(bed) == ["j-0"])
        # One owner, so the next one waits: a successor may be refused as well.
        await refuse(bed, "j-1", EVICT)
        await bed.job("k", 1)
        await bed.phase("k", "Running")
        await refuse(bed, "k-0", EVICT)
        await until("another owner's is evicted at once", lambda: "k-0" in evictions(bed))
        assert evictions(bed) == ["j-0", "k-0"]


async def test_a_pod_without_an_owner_is_told_and_left_alone() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        await bed.pod("bare", gang="b", size="1")
        await bed.phase("b", "Running")
        await refuse(bed, "bare", EVICT)
        await until("an event says so", lambda: bed.events("Refused"))
        assert "bare" in await pods(bed)
        assert not evictions(bed)


async def test_where_only_a_report_is_wanted_nothing_is_evicted() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        for name, wanted in (("r", REPORT), ("e", EVICT)):
            await bed.job(name, 1)
            await bed.phase(name, "Running")
            await refuse(bed, f"{name}-0", wanted)
        # The second shows that the first was looked at: claims are taken in their order.
        await until("the other one is evicted", lambda: evictions(bed) == ["e-0"])
        assert "r-0" in await pods(bed)


async def test_an_event_that_cannot_be_read_costs_only_itself() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller() as controller:
        for name, count in (("odd", "many"), ("good", 1)):
            await bed.job(name, 1)
            await bed.phase(name, "Running")
            await fails_to_prepare(bed, f"{name}-0", count)
        await until("the other pod's kubelet is woken", lambda: is_woken(bed, "good-0"))
        ends = controller.metrics.registry.get_sample_value(
            "dragoon_part_restarts_total", {"part": "tending"}
        )
        assert not ends


async def test_a_kubelet_that_failed_before_its_pod_is_seen_bound_is_woken_too() -> None:
    """Events and pods are watched apart: either may come first."""
    async with Bed(nodes=1).up() as bed, bed.controller():
        await bed.job("other", 1)
        await bed.phase("other", "Running")
        bed.plane.binds = False
        early = (await bed.job("early", 1))[0]["metadata"]
        await until("it is allocated", lambda: is_allocated(bed, "early-0"))
        consumer = {"resource": "pods", "name": early["name"], "uid": early["uid"]}
        reserved = {"status": {"reservedFor": [consumer]}}
        (claim,) = (name for name in await bed.allocated() if name.startswith("early-0-"))
        await bed.api.patch(CLAIMS, claim, reserved, namespace=SPACE, subresource="status")
        for pod in ("early-0", "other-0"):
            await fails_to_prepare(bed, pod, 1)
        # The second shows that the first was looked at: events are taken in their order.
        await until("the other one is woken", lambda: is_woken(bed, "other-0"))
        await bed.api.patch(PODS, "early-0", {"spec": {"nodeName": "n0"}}, namespace=SPACE)
        await until("it is woken", lambda: is_woken(bed, "early-0"))


async def is_allocated(bed: Bed, pod: str) -> bool:
    return any(name.startswith(f"{pod}-") for name in await bed.allocated())
