"""A Kueue that is not there, comes late, is there in part, in another version, or switched off."""

from dragoon.gang.kueue.apis import GROUP
from tests.scenario.gang.bed import Bed
from tests.scenario.gang.kueue import WHOLE, Kueue, metric, setting
from tests.scenario.pluginbed import until


async def test_without_kueue_nothing_of_it_is_asked_for() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller() as controller:
        await bed.job("train", 2)
        await bed.phase("train", "Running")
        assert metric(controller, "dragoon_kueue", state="absent") == 1
        assert not [call for call in bed.api.faults.calls if call.resource.group == GROUP]


async def test_a_kueue_that_comes_later_is_found_and_one_that_goes_is_let_go() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller() as controller:
        kueue = Kueue(bed)
        await until("it works", lambda: not controller.not_ready())
        await until("none is seen", lambda: metric(controller, "dragoon_kueue", state="absent"))
        await kueue.check()
        await kueue.flavor()
        kueue.install()
        await until("the check is active", kueue.is_active)
        await kueue.queued("train", 4)
        await kueue.reaches("train", "Ready")
        assert metric(controller, "dragoon_kueue_promises") == 1
        kueue.remove()
        await until("it is seen", lambda: metric(controller, "dragoon_kueue", state="absent"))
        assert metric(controller, "dragoon_kueue_promises") == 0
        await bed.job("other", 2, template="pair")
        await bed.phase("other", "Running")


async def test_half_of_kueue_is_reported_and_used_once_it_is_whole() -> None:
    async with Bed(nodes=1).up() as bed:
        kueue = Kueue(bed)
        kueue.install(WHOLE - {"workloads"})
        await kueue.check()
        async with bed.controller() as controller:
            await until("it is told", lambda: metric(controller, "dragoon_kueue", state="Half"))
            assert await kueue.is_active() == ""
            await bed.job("train", 2)
            await bed.phase("train", "Running")
            kueue.install()
            await until("the check is active", kueue.is_active)
            assert metric(controller, "dragoon_kueue", state="Half") == 0


async def test_an_older_version_that_is_served_is_spoken() -> None:
    async with setting(version="v1beta1") as (bed, kueue), bed.controller() as controller:
        await kueue.queued("train", 4)
        await kueue.reaches("train", "Ready")
        assert metric(controller, "dragoon_kueue", state="v1beta1") == 1


async def test_a_version_that_is_not_known_is_reported_and_left_alone() -> None:
    async with Bed(nodes=1).up() as bed:
        bed.api.more_groups[GROUP] = ("v9",)
        async with bed.controller() as controller:
            await until("it is told", lambda: metric(controller, "dragoon_kueue", state="Version"))
            await bed.job("train", 2)
            await bed.phase("train", "Running")


async def test_a_kueue_that_forgets_the_wait_is_not_answered_in_a_loop() -> None:
    """Older ones have no requeueAfterSeconds: what was sent back would be here again at once."""
    async with setting() as (bed, kueue):
        bed.api.faults.drop(
            kueue.apis.workloads, "status", "admissionChecks", "*", "requeueAfterSeconds"
        )
        async with bed.controller() as controller:
            await bed.job("busy", 4)
            await bed.phase("busy", "Running")
            await kueue.queued("train", 2)
            assert "requeueAfterSeconds" not in await kueue.reaches("train", "Retry")
            await kueue.take_back("train")
            await kueue.reserve("train")
            # Another one is answered meanwhile: ours was looked at and held back.
            await kueue.queued("more", 1)
            await kueue.reaches("more", "Retry")
            assert (await kueue.state("train"))["state"] == "Pending"
            # Once for each: the second answer for ours is not due yet.
            assert metric(controller, "dragoon_kueue_checks_total", state="Retry") == 2
            await bed.end("busy-0")
            await bed.end("busy-1")
            await kueue.reaches("train", "Ready")


async def test_switched_off_it_does_not_even_look() -> None:
    async with setting() as (bed, kueue), bed.controller(kueue="off") as controller:
        await until("it works", lambda: not controller.not_ready())
        await bed.job("train", 2)
        await bed.phase("train", "Running")
        assert await kueue.is_active() == ""
