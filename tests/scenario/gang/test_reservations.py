"""Devices in use that are kept for the largest gang that waits."""

import asyncio

import pytest

from dragoon.app.controller import Controller
from dragoon.app.gang_view import give_up
from dragoon.gang.waiting.durations import ANNOTATION_DURATION
from dragoon.kube.port import GANGS, NODES, PODS, SLICES
from tests.scenario.gang.bed import SPACE, Bed, condition
from tests.scenario.gang.keeping import AT_ONCE, fenced, nothing_kept, reserved, singles
from tests.scenario.gang.planners import counting
from tests.scenario.pluginbed import until


async def end(bed: Bed, name: str) -> None:
    await bed.end(f"{name}-0")
    await bed.phase(name, "Finished")


async def test_a_stream_of_small_gangs_cannot_starve_a_large_one() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(**AT_ONCE) as controller:
        await singles(bed, "a", "b", "c", "d")
        for name in "abcd":
            await bed.phase(name, "Running")
        await bed.job("large", 2, template="pair")
        kept = await reserved(bed, "large")
        await until("it is counted", lambda: counted(controller) == 1)
        status, reason, message = condition(kept, "Reserved")
        assert (status, reason) == ("True", "Kept")
        assert message.startswith("4 devices on n0 since ")
        assert message.endswith(
            "; waits for pod team/a-0, pod team/b-0, pod team/c-0, pod team/d-0"
        )
        for index, name in enumerate("abcd"):
            await singles(bed, f"next{index}")
            await bed.phase(f"next{index}", "Waiting")
            await end(bed, name)
        await bed.phase("large", "Running")
        for index in range(4):
            waiting = await bed.see(f"next{index}")
            assert waiting is not None
            assert waiting.status.phase == "Waiting"
        await until("nothing is kept any more", lambda: nothing_kept(bed, "large"))
        assert await fenced(bed, "large") == {"n0/gpu"}
        await until("it is not counted any more", lambda: counted(controller) == 0)


def counted(controller: Controller) -> float | None:
    """The metric of gangs for which devices are kept."""
    return controller.metrics.registry.get_sample_value("dragoon_gangs_reserved")


async def test_the_rest_of_the_fleet_stays_open_to_others() -> None:
    async with Bed(nodes=2).up() as bed, bed.controller(**AT_ONCE):
        await bed.job("full", 4)
        await bed.phase("full", "Running")
        await bed.job("half", 2)
        await bed.phase("half", "Running")
        await bed.job("large", 2, template="pair")
        # One pair is free: there is one node to wait for, whichever.
        kept = await reserved(bed, "large")
        assert kept.status.reservation is not None
        (node,) = kept.status.reservation.nodes
        await singles(bed, "x")
        await bed.phase("x", "Waiting" if node == (await where(bed, "half")) else "Running")


async def where(bed: Bed, gang: str) -> str:
    (node,) = set((await bed.bound(gang)).values())
    return node


async def test_the_more_important_gang_takes_over_and_may_use_what_is_kept() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(**AT_ONCE):
        await singles(bed, "a", "b", "c", "d")
        for name in "abcd":
            await bed.phase(name, "Running")
        await bed.job("first", 2, template="pair")
        await reserved(bed, "first")
        await bed.job("second", 2, template="pair", priority=10)
        await reserved(bed, "second")
        await until("nothing is kept for the first", lambda: nothing_kept(bed, "first"))
        await until("nor fenced", lambda: is_fenced(bed, "first", ""))
        await end(bed, "a")
        await end(bed, "b")
        await singles(bed, "urgent", priority=20)
        await bed.phase("urgent", "Running")
        for name in ("c", "d", "urgent"):
            await end(bed, name)
        await bed.phase("second", "Running")


async def test_a_gang_for_which_nothing_can_be_kept_takes_nothing_from_another() -> None:
    asked: list[str] = []
    async with (
        Bed(nodes=2).up() as bed,
        bed.controller(planner=counting(asked), **AT_ONCE),
    ):
        await bed.job("important", 4, priority=100)
        await bed.phase("important", "Running")
        await singles(bed, "a", "b", "c", "d")
        for name in "abcd":
            await bed.phase(name, "Running")
        await bed.job("first", 2, template="pair", priority=5)
        await reserved(bed, "first")
        history: list[bool] = []
        watching = asyncio.create_task(keep_history(bed, "first", history))
        await bed.job("huge", 4, template="pair", priority=10)
        # Once to be placed, and once more for what could be kept for it: nothing, on both nodes.
        await until("it was tried in vain", lambda: asked.count("team/huge") >= 2)
        await bed.waits("huge")
        assert await nothing_kept(bed, "huge")
        await singles(bed, "later")
        await bed.phase("later", "Waiting")
        for name in "abcd":
            await end(bed, name)
        await bed.phase("first", "Running")
        assert not watching.done()
        watching.cancel()
        assert all(history)


async def keep_history(bed: Bed, name: str, history: list[bool]) -> None:
    """Notes with every change of a Gang that waits whether devices are kept for it."""
    start = bed.api.resource_version
    async for event in bed.api.watch(GANGS, resource_version=start, namespace=SPACE):
        status = event.object.get("status") or {}
        if event.object["metadata"]["name"] == name and status.get("phase") == "Waiting":
            history.append("reservation" in status or "plan" in status)


async def is_fenced(bed: Bed, name: str, *pools: str) -> bool:
    return await fenced(bed, name) == {pool for pool in pools if pool}


async def kept_on_one_of_two(bed: Bed) -> tuple[str, str]:
    """Two full nodes: the one that is kept for the gang `large`, and the other."""
    await bed.job("one", 4)
    await bed.job("two", 4)
    for name in ("one", "two"):
        await bed.phase(name, "Running")
    await bed.job("large", 2, template="pair")
    kept = await reserved(bed, "large")
    assert kept.status.reservation is not None
    (node,) = kept.status.reservation.nodes
    return node, "n1" if node == "n0" else "n0"


async def test_a_gang_that_goes_takes_its_reservation_with_it() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(**AT_ONCE):
        await bed.job("full", 4)
        await bed.phase("full", "Running")
        await bed.job("large", 2, template="pair")
        await reserved(bed, "large")
        for index in range(2):
            await bed.api.delete(PODS, f"large-{index}", namespace=SPACE)
        await bed.api.delete(GANGS, "large", namespace=SPACE)
        await until("it is not fenced any more", lambda: is_fenced(bed, "large", ""))
        assert await fenced(bed, "full") == {"n0/gpu"}


async def test_what_was_kept_on_a_node_that_is_gone_is_chosen_anew() -> None:
    async with Bed(nodes=2).up() as bed, bed.controller(**AT_ONCE):
        node, other = await kept_on_one_of_two(bed)
        await bed.api.delete(SLICES, f"{node}-gpu")
        await bed.api.delete(NODES, node)
        await until("it is fenced elsewhere", lambda: is_fenced(bed, "large", f"{other}/gpu"))


async def test_none_are_kept_where_the_setting_says_so() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(most_reservations=0, **AT_ONCE) as one:
        await bed.job("full", 4)
        await bed.phase("full", "Running")
        await bed.job("large", 2, template="pair")
        await bed.phase("large", "Waiting")
        await looked(one, bed)
        assert await nothing_kept(bed, "large")


async def looked(one: Controller, bed: Bed) -> None:
    """Waits until a gang that came later was looked at: so was all before."""
    assert one.state()["leading"]
    await singles(bed, "later")
    await bed.phase("later", "Waiting")


@pytest.mark.parametrize(
    ("seconds", "phase"), [("30", "Running"), ("7200", "Waiting"), ("", "Waiting")]
)
async def test_a_small_gang_that_ends_in_time_is_backfilled(seconds: str, phase: str) -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(**AT_ONCE):
        await bed.job("full", 3, annotations={ANNOTATION_DURATION: "1h"})
        await bed.phase("full", "Running")
        for index in range(3):
            await bed.start(f"full-{index}")
        await bed.job("large", 2, template="pair")
        kept = await reserved(bed, "large")
        assert "at the latest" in condition(kept, "Reserved")[2]
        await singles(bed, "small", annotations={ANNOTATION_DURATION: seconds} if seconds else {})
        await bed.phase("small", phase)


async def test_without_durations_there_is_no_estimate_and_no_backfill() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(**AT_ONCE):
        await bed.job("full", 3)
        await bed.phase("full", "Running")
        await bed.job("large", 2, template="pair")
        kept = await reserved(bed, "large")
        assert "at the latest" not in condition(kept, "Reserved")[2]
        await singles(bed, "small", activeDeadlineSeconds=5)
        await bed.phase("small", "Waiting")


async def test_giving_up_a_gang_gives_up_what_is_kept_for_it() -> None:
    async with Bed(nodes=1).up() as bed:
        async with bed.controller(**AT_ONCE):
            await bed.job("full", 4)
            await bed.phase("full", "Running")
            await bed.job("large", 2, template="pair")
            await reserved(bed, "large")
        found = await give_up(bed.api, namespace=SPACE, name="large")
        assert (found.pods, found.rules) == (2, 1)
        assert await nothing_kept(bed, "large")
        assert await fenced(bed, "large") == set()


async def test_a_small_gang_is_backfilled_as_soon_as_it_is_known_how_long_the_others_run() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(**AT_ONCE):
        await bed.job("full", 3, annotations={ANNOTATION_DURATION: "1h"})
        await bed.phase("full", "Running")
        await bed.job("large", 2, template="pair")
        kept = await reserved(bed, "large")
        assert "at the latest" not in condition(kept, "Reserved")[2]
        await singles(bed, "small", annotations={ANNOTATION_DURATION: "30"})
        await bed.phase("small", "Waiting")
        for index in range(3):
            await bed.start(f"full-{index}")
        await bed.phase("small", "Running")


async def test_what_was_kept_with_a_device_that_failed_is_chosen_anew() -> None:
    async with Bed(nodes=2).up() as bed, bed.controller(**AT_ONCE):
        node, other = await kept_on_one_of_two(bed)
        found = await bed.api.get(SLICES, f"{node}-gpu")
        devices = found["spec"]["devices"]
        devices[0]["taints"] = [{"key": "dragoon.dev/lost", "effect": "NoSchedule"}]
        await bed.api.patch(SLICES, f"{node}-gpu", {"spec": {"devices": devices}})
        await until("it is fenced elsewhere", lambda: is_fenced(bed, "large", f"{other}/gpu"))


async def test_a_reservation_that_somebody_edited_keeps_nothing_and_is_chosen_anew() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(**AT_ONCE):
        await bed.job("full", 4)
        await bed.phase("full", "Running")
        await bed.job("large", 2, template="pair")
        kept = await reserved(bed, "large")
        assert kept.status.reservation is not None
        was = kept.status.reservation.packed
        body = {"status": {"reservation": {"packed": "nonsense"}}}
        await bed.api.patch(GANGS, "large", body, namespace=SPACE, subresource="status")

        async def is_good_again() -> bool:
            found = await bed.see("large")
            kept = None if found is None else found.status.reservation
            return kept is not None and kept.packed == was

        await until("it is chosen anew", is_good_again)
        for index in range(4):
            await bed.end(f"full-{index}")
        await bed.phase("large", "Running")
