"""Journals that another version wrote, or that somebody edited: never touched, never in the way."""

from dragoon.kube.port import GANGS
from tests.scenario.gang.bed import SPACE, Bed
from tests.scenario.pluginbed import until


async def edit(bed: Bed, gang: str, **plan: object) -> None:
    await bed.api.patch(
        GANGS, gang, {"status": {"plan": plan}}, namespace=SPACE, subresource="status"
    )


async def test_a_plan_of_an_unknown_version_is_told_and_left_alone() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.job("j", 2)
        await bed.phase("j", "Running")
        rules = len(await bed.rules())
        await edit(bed, "j", version=99)
        await until("an event says so", lambda: bed.events("UnknownPlan"))
        await bed.end("j-0")
        await bed.end("j-1")
        # Another gang lives its whole life meanwhile; nothing of the first one is removed.
        await bed.job("k", 2)
        await bed.phase("k", "Running")
        assert len(await bed.rules()) >= rules
        gang = await bed.see("j")
        assert gang is not None
        assert gang.status.plan is not None
        assert gang.status.plan.version == 99


async def test_a_damaged_plan_keeps_its_gang_back_and_no_other() -> None:
    async with Bed().up() as bed:
        async with bed.controller():
            await bed.job("j", 2)
            await bed.phase("j", "Running")
        await edit(bed, "j", step="Commit", packed="damaged")
        async with bed.controller():
            await until("an event says so", lambda: bed.events("DamagedPlan"))
            await bed.job("k", 2)
            await bed.phase("k", "Running")
            gang = await bed.see("j")
            assert gang is not None
            assert gang.status.plan is not None
            assert gang.status.plan.packed == "damaged"
            assert len(await bed.bound("j")) == 2
