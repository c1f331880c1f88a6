"""How gangs end: deleted half-way, finished, given up; what is left and what is written then."""

import asyncio
import threading

import pytest

from dragoon.allocator.gang.model import Budget, GangAsk, Outcome, PlacementSnapshot
from dragoon.allocator.gang.planning import plan
from dragoon.app.gang_view import give_up
from dragoon.errors import InvalidInputError
from dragoon.kube.faults import Call
from dragoon.kube.port import CLAIMS, GANGS, NODES, PODS, Object
from testbed.waiting import PATIENCE
from tests.scenario.gang.bed import SPACE, Bed
from tests.scenario.pluginbed import until


async def test_a_gang_deleted_while_it_is_committed_leaves_nothing_and_its_pods_run() -> None:
    async with Bed().up() as bed, bed.controller():
        held = bed.api.faults.hang(times=1, when=_is_allocation)
        await bed.job("j", 4, template="pair")
        await asyncio.wait_for(held.reached.wait(), PATIENCE)
        await bed.api.delete(GANGS, "j", namespace=SPACE)
        held.lift()
        # The pods carry the label still, so another Gang takes them.
        gang = await bed.phase("j", "Running")
        await until("only rules of the new gang are left", lambda: _rules_of(bed, gang.uid))
        devices = [device for found in (await bed.allocated()).values() for device in found]
        assert len(devices) == len(set(devices)) == 8


async def _rules_of(bed: Bed, uid: str) -> bool:
    labels = [rule["metadata"]["labels"] for rule in await bed.rules()]
    return bool(labels) and {one["dragoon.dev/gang-uid"] for one in labels} == {uid}


async def test_pods_deleted_half_way_leave_no_claim_and_no_rule() -> None:
    async with Bed().up() as bed, bed.controller():
        held = bed.api.faults.hang(times=1, when=_is_allocation)
        await bed.job("j", 2)
        await asyncio.wait_for(held.reached.wait(), PATIENCE)
        for index in range(2):
            await bed.api.delete(PODS, f"j-{index}", namespace=SPACE)
        held.lift()
        await until("no rule is left", lambda: _nothing(bed))


async def _nothing(bed: Bed) -> bool:
    return not await bed.rules() and not (await bed.api.list(CLAIMS)).items


async def test_a_dead_member_is_replaced_on_its_place() -> None:
    async with Bed(nodes=1, gpus=2).up() as bed, bed.controller():
        job_pods = await bed.job("j", 2)
        await bed.phase("j", "Running")
        await bed.end("j-0", "Failed")
        owner = job_pods[0]["metadata"]["ownerReferences"][0]
        job = {"metadata": {"name": owner["name"], "uid": owner["uid"]}}
        await bed.pod("j-0b", gang="j", size="2", job=job, slot="0")

        async def back() -> bool:
            return {"j-0b", "j-1"} <= set(await bed.bound("j"))

        await until("the successor is bound", back)
        assert len(await bed.allocated()) == 2


@pytest.mark.parametrize("restarted", [1, 2])
async def test_who_comes_before_the_claims_of_those_that_went_are_freed_gets_their_places(
    restarted: int,
) -> None:
    """One member that is made again, and a gang that is started again; there is room elsewhere."""
    async with Bed(nodes=2, gpus=2).up() as bed, bed.controller():
        pods = await bed.job("j", 2)
        await bed.phase("j", "Running")
        before = await bed.bound("j")
        assert len(set(before.values())) == 1
        bed.plane.frees = False
        owner = pods[0]["metadata"]["ownerReferences"][0]
        job = {"metadata": {"name": owner["name"], "uid": owner["uid"]}}
        for slot in range(restarted):
            await bed.api.delete(PODS, f"j-{slot}", namespace=SPACE)
        for slot in range(restarted):
            await bed.pod(f"j-{slot}b", gang="j", size="2", job=job, slot=str(slot))

        async def told() -> bool:
            gang = await bed.see("j")
            return gang is not None and "the place of pod j-0b" in gang.status.waiting_for

        await until("it says what it waits for", told)
        assert not {f"j-{slot}b" for slot in range(restarted)} & set(await bed.bound("j"))
        bed.plane.free_again()
        await until("all are bound", lambda: _are_bound(bed, "j", 2))
        assert set((await bed.bound("j")).values()) == set(before.values())


async def _are_bound(bed: Bed, gang: str, count: int) -> bool:
    return len(await bed.bound(gang)) == count


async def test_a_place_on_a_node_that_is_drained_is_not_waited_for() -> None:
    async with Bed(nodes=2, gpus=2).up() as bed, bed.controller():
        pods = await bed.job("j", 2)
        await bed.phase("j", "Running")
        before = await bed.bound("j")
        bed.plane.frees = False
        await bed.api.patch(NODES, before["j-0"], {"spec": {"unschedulable": True}})
        await bed.api.delete(PODS, "j-0", namespace=SPACE)
        owner = pods[0]["metadata"]["ownerReferences"][0]
        job = {"metadata": {"name": owner["name"], "uid": owner["uid"]}}
        await bed.pod("j-0b", gang="j", size="2", job=job, slot="0")
        await until("the successor is bound", lambda: _are_bound(bed, "j", 2))
        after = await bed.bound("j")
        assert after["j-1"] == before["j-1"] != after["j-0b"]


async def test_a_finished_gang_is_written_no_more() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        await bed.job("j", 2)
        await bed.phase("j", "Running")
        for index in range(2):
            await bed.end(f"j-{index}")
        await bed.phase("j", "Finished")

        async def at_rest() -> bool:
            """Nothing is written while a pod that has nothing to do with it comes and goes."""
            before = len(_writes(bed.api.faults.calls))
            await bed.pod("x", gang="x", size="1")
            await bed.phase("x", "Running")
            own = [call for call in _writes(bed.api.faults.calls)[before:] if call.name == "j"]
            await bed.api.delete(PODS, "x", namespace=SPACE)
            await bed.api.delete(GANGS, "x", namespace=SPACE)  # as the garbage collector does
            await until("x is gone", lambda: _only(bed, "j"))
            return not own

        await until("it is left alone", at_rest)


async def _only(bed: Bed, name: str) -> bool:
    gangs = (await bed.api.list(GANGS)).items
    return not await bed.rules() and [gang["metadata"]["name"] for gang in gangs] == [name]


async def test_everything_can_be_given_up_without_a_controller() -> None:
    async with Bed().up() as bed:
        async with bed.controller():
            held = bed.api.faults.hang(times=None, when=_is_allocation)
            await bed.job("j", 4, template="pair")
            await asyncio.wait_for(held.reached.wait(), PATIENCE)
        held.lift()
        assert len(await bed.rules()) == 2
        done = await give_up(bed.api)
        assert (done.pods, done.rules, done.plans) == (4, 2, 1)
        assert not await bed.rules()
        pods = (await bed.api.list(PODS)).items
        assert not any(pod["spec"].get("schedulingGates") for pod in pods)
        # Again: there is nothing left to do.
        again = await give_up(bed.api)
        assert (again.pods, again.rules, again.plans) == (0, 0, 0)


async def test_one_gang_is_given_up_and_the_other_stays() -> None:
    async with Bed().up() as bed:
        async with bed.controller():
            for name in ("a", "b"):
                await bed.job(name, 2)
                await bed.phase(name, "Running")
        await give_up(bed.api, namespace=SPACE, name="a")
        gang = await bed.see("b")
        assert gang is not None
        assert await _rules_of(bed, gang.uid)
        with pytest.raises(InvalidInputError, match="gang team/nowhere: not found"):
            await give_up(bed.api, namespace=SPACE, name="nowhere")


async def test_of_two_gangs_with_one_label_only_the_one_that_is_named_is_given_up() -> None:
    async with Bed(nodes=1).up() as bed:
        async with bed.controller():
            for name in ("a", "b"):
                await bed.job(name, 3, template="pair", label="same")
            await until("both wait", lambda: _waiting(bed, 2))
        gangs = {one["spec"]["owner"]["name"]: one for one in await _gangs(bed)}
        done = await give_up(bed.api, namespace=SPACE, name=gangs["a"]["metadata"]["name"])
        assert done.pods == 3
        for pod in (await bed.api.list(PODS, namespace=SPACE)).items:
            is_held = bool(pod["spec"].get("schedulingGates"))
            assert is_held is pod["metadata"]["name"].startswith("b-")


async def _gangs(bed: Bed) -> list[Object]:
    return list((await bed.api.list(GANGS, namespace=SPACE)).items)


async def _waiting(bed: Bed, count: int) -> bool:
    phases = [(one.get("status") or {}).get("phase") for one in await _gangs(bed)]
    return phases == ["Waiting"] * count


def _is_allocation(call: Call) -> bool:
    return call.verb == "patch" and call.resource is CLAIMS and call.subresource == "status"


def _writes(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.verb not in {"get", "list", "watch"}]


async def test_other_gangs_come_in_when_no_slot_of_a_gang_waits_any_more() -> None:
    async with Bed(nodes=1, gpus=3).up() as bed, bed.controller():
        pods = await bed.job("j", 2)
        await bed.phase("j", "Running")
        await bed.end("j-0", "Failed")

        async def vacated() -> bool:
            gang = await bed.see("j")
            plan = gang.status.plan if gang is not None else None
            return plan is not None and any(member.vacated for member in plan.held)

        await until("its slot waits", vacated)
        # Two GPUs are free, and both could be the successor's.
        await bed.job("k", 1)
        await bed.phase("k", "Waiting")
        owner = pods[0]["metadata"]["ownerReferences"][0]
        job = {"metadata": {"name": owner["name"], "uid": owner["uid"]}}
        await bed.pod("j-0b", gang="j", size="2", job=job, slot="0")
        await bed.phase("k", "Running")
        assert "j-0b" in await bed.bound("j")


async def test_room_that_comes_up_while_a_gang_is_planned_is_not_missed() -> None:
    thinking, go = threading.Event(), threading.Event()

    def slow(placement: PlacementSnapshot, ask: GangAsk, budget: Budget) -> Outcome:
        """Answers late to the second gang, from what it was shown at first."""
        outcome = plan(placement, ask, budget)
        if ask.name.endswith("/k") and not go.is_set():
            thinking.set()
            go.wait(30)
        return outcome

    async with Bed(nodes=1, gpus=1).up() as bed, bed.controller(planner=slow):
        await bed.job("j", 1)
        await bed.phase("j", "Running")
        await bed.job("k", 1)
        await until("k is planned", thinking.is_set)
        await bed.end("j-0")
        await until("its device is free", lambda: _free(bed))
        await bed.phase("j", "Finished")
        await until("its fence is gone", lambda: _no_rules(bed))
        go.set()
        await bed.phase("k", "Running")


async def test_a_gang_that_is_deleted_while_it_is_planned_holds_nothing() -> None:
    thinking, go = threading.Event(), threading.Event()

    def slow(placement: PlacementSnapshot, ask: GangAsk, budget: Budget) -> Outcome:
        """Answers late to the first gang."""
        thinking.set()
        go.wait(30)
        return plan(placement, ask, budget)

    async with Bed(nodes=1, gpus=1).up() as bed, bed.controller(planner=slow):
        await bed.job("j", 1)
        await until("it is planned", thinking.is_set)
        await bed.api.delete(GANGS, "j", namespace=SPACE)
        await bed.job("k", 1)
        await until("the controller goes on", lambda: bed.see("k"))
        go.set()
        # The pods of the first are a gang again: the one device is for either.
        await until("one of both runs", lambda: _one_is_bound(bed))


async def _one_is_bound(bed: Bed) -> bool:
    return bool(await bed.bound("j") or await bed.bound("k"))


async def _free(bed: Bed) -> bool:
    return not await bed.allocated()


async def _no_rules(bed: Bed) -> bool:
    return not await bed.rules()
