"""Who is placed first when there is room for one of those that wait."""

import threading
from collections.abc import Callable
from typing import Any

from dragoon.allocator.gang.model import Budget, GangAsk, Outcome, PlacementSnapshot
from dragoon.allocator.gang.planning import plan
from dragoon.api.gang import ANNOTATION_WORKLOAD
from dragoon.kube.port import GANGS, TAINT_RULES
from testbed.waiting import PATIENCE
from tests.scenario.gang.bed import Bed
from tests.scenario.gang.planners import counting, held_up
from tests.scenario.pluginbed import until


async def full_of_one(bed: Bed) -> None:
    await bed.job("first", 4)
    await bed.phase("first", "Running")


async def free(bed: Bed) -> None:
    """All members of the first end at once."""
    for index in range(4):
        await bed.end(f"first-{index}")


async def test_the_higher_priority_is_placed_first_though_it_came_last() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(most_reservations=0):
        await full_of_one(bed)
        for name, priority in (("low", 0), ("middle", 5), ("high", 10)):
            await bed.job(name, 4, priority=priority)
            await bed.phase(name, "Waiting")
        await free(bed)
        await bed.phase("high", "Running")
        for name in ("low", "middle"):
            await bed.phase(name, "Waiting")
        for index in range(4):
            await bed.end(f"high-{index}")
        await bed.phase("middle", "Running")
        await bed.phase("low", "Waiting")


async def test_a_new_gang_does_not_pass_one_of_higher_priority_for_which_there_is_room_now() -> (
    None
):
    async with Bed(nodes=1).up() as bed, bed.controller(most_reservations=0):
        await full_of_one(bed)
        await bed.job("high", 4, priority=10)
        await bed.phase("high", "Waiting")
        await bed.job("late", 4)
        await free(bed)
        await bed.phase("high", "Running")
        await bed.phase("late", "Waiting")


async def test_what_comes_free_while_a_better_one_is_planned_is_for_that_one() -> None:
    is_late, busy, go_on = threading.Event(), threading.Event(), threading.Event()

    def planner(snapshot: PlacementSnapshot, ask: GangAsk, budget: Budget) -> Outcome:
        if is_late.is_set() and ask.name == "team/high" and not busy.is_set():
            busy.set()
            assert go_on.wait(PATIENCE)
        return plan(snapshot, ask, budget)

    async with Bed(nodes=1).up() as bed, bed.controller(planner=planner, most_reservations=0):
        try:
            await full_of_one(bed)
            for name, priority in (("high", 10), ("low", 0)):
                await bed.job(name, 4, priority=priority)
                await bed.waits(name)
            is_late.set()
            await bed.end("first-0")
            await until("the better one is planned", busy.is_set)
            for index in range(1, 4):
                await bed.end(f"first-{index}")
            await until("all is free", lambda: held_on(bed, "n0", lambda held: held == 0))
        finally:
            go_on.set()
        await until("one of them is placed", lambda: held_on(bed, "n0", lambda held: held > 0))
        await bed.phase("high", "Running")
        await bed.phase("low", "Waiting")


async def test_one_that_waits_for_what_is_not_there_holds_nobody_back() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller(most_reservations=0):
        await full_of_one(bed)
        await bed.job("huge", 8, priority=10)
        await bed.phase("huge", "Waiting")
        await bed.job("small", 2)
        await bed.phase("small", "Waiting")
        await free(bed)
        await bed.phase("small", "Running")


async def test_a_gang_that_waits_is_not_planned_again_for_what_does_not_concern_it() -> None:
    asked: list[str] = []
    async with (
        Bed(nodes=1).up() as bed,
        bed.controller(planner=counting(asked), most_reservations=0),
    ):
        await bed.add_node("other", 2, labels={"pool": "b"})
        only: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": "n0"}}
        await bed.job("first", 4, **only)
        await bed.phase("first", "Running")
        await bed.job("second", 4, **only)
        await bed.waits("second")
        before = asked.count("team/second")
        elsewhere: dict[str, Any] = {"nodeSelector": {"pool": "b"}}
        for index in range(5):
            name = f"elsewhere{index}"
            await bed.pod(f"{name}-0", gang=name, size="1", **elsewhere)
            await bed.phase(name, "Running")
            await bed.end(f"{name}-0")
            await bed.phase(name, "Finished")
            await until("its claim is free", lambda: held_on(bed, "other", lambda held: held == 0))
        assert asked.count("team/second") == before
        await bed.end("first-0")
        await until("it is planned again", lambda: asked.count("team/second") > before)


async def held_on(bed: Bed, node: str, wanted: Callable[[int], bool]) -> bool:
    devices = [one for found in (await bed.allocated()).values() for one in found]
    return wanted(sum(pool == f"{node}/gpu" for pool, _ in devices))


async def test_any_number_of_gangs_that_wait_for_the_planner_keep_no_worker_from_the_others() -> (
    None
):
    asked: list[str] = []
    go_on = threading.Event()
    async with Bed(nodes=2).up() as bed:
        async with bed.controller():
            await bed.job("runs", 1)
            await bed.phase("runs", "Running")
        async with bed.controller(planner=held_up(asked, go_on), most_reservations=0):
            try:
                for index in range(20):
                    await bed.job(f"low{index}", 1, template="pair")
                await until("the planner is busy", lambda: asked)
                await until("all wait for it", lambda: has_gangs(bed, 21))
                await bed.end("runs-0")
                await bed.phase("runs", "Finished")
            finally:
                go_on.set()


async def has_gangs(bed: Bed, count: int) -> bool:
    return len((await bed.api.list(GANGS)).items) == count


async def test_what_is_promised_to_a_gang_is_taken_for_one_whose_pods_name_its_uid() -> None:
    """Anybody may write the annotation by which Kueue's Workloads are known."""
    taken: dict[str, int] = {}

    def planner(snapshot: PlacementSnapshot, ask: GangAsk, budget: Budget) -> Outcome:
        taken[ask.name] = sum(len(one.exclusive) for one in snapshot.cluster.usage.values())
        return plan(snapshot, ask, budget)

    async with (
        Bed(nodes=1).up() as bed,
        bed.controller(planner=planner, most_reservations=0),
    ):
        fencing = bed.api.faults.hang(times=None, verb="create", resource=TAINT_RULES)
        await bed.job("first", 4)
        first = await bed.phase("first", "Fencing")
        await bed.pod(
            "thief-0", gang="thief", size="1", annotations={ANNOTATION_WORKLOAD: first.uid}
        )
        await bed.phase("thief", "Waiting")
        await until("it is planned", lambda: "team/thief" in taken)
        assert taken["team/thief"] == 4
        fencing.lift()
        await bed.phase("first", "Running")
