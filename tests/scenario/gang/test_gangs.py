"""Gangs from pods to bound pods: the whole controller on an in-memory API server."""

import asyncio
from collections import Counter

from dragoon.api.gang import LABEL
from dragoon.api.gang_plan import Step
from dragoon.kube.port import CLAIMS, GANGS, PODS, TAINT_RULES
from testbed.waiting import PATIENCE
from tests.scenario.gang.bed import SPACE, Bed, condition
from tests.scenario.pluginbed import until


async def test_a_job_with_the_label_is_placed_all_together() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.job("ddp", 4, template="pair")
        gang = await bed.phase("ddp", "Running")
        assert gang.spec.size == 4
        assert gang.status.members.summary == "4/4"
        assert [(one.kind, one.name) for one in gang.owners] == [("Job", "ddp")]
        bound = await bed.bound("ddp")
        assert Counter(bound.values()) == {"n0": 2, "n1": 2}
        devices = [device for found in (await bed.allocated()).values() for device in found]
        assert len(devices) == len(set(devices)) == 8
        assert {rule["spec"]["deviceSelector"]["pool"] for rule in await bed.rules()} == {
            "n0/gpu",
            "n1/gpu",
        }


async def test_people_see_the_step_that_a_gang_is_at_while_it_is_written() -> None:
    async with Bed().up() as bed, bed.controller():
        fencing = bed.api.faults.hang(times=None, verb="create", resource=TAINT_RULES)
        committing = bed.api.faults.hang(
            times=None,
            verb="patch",
            when=lambda call: call.resource == CLAIMS and call.subresource == "status",
        )
        await bed.job("ddp", 4, template="pair")
        for held, phase in ((fencing, "Fencing"), (committing, "Committing")):
            await asyncio.wait_for(held.reached.wait(), PATIENCE)
            await bed.phase("ddp", phase)
            held.lift()
        await bed.phase("ddp", "Running")


async def test_c45_a_gang_without_room_leaves_nothing_and_runs_as_soon_as_there_is_room() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        await bed.job("first", 2, template="pair")
        await bed.phase("first", "Running")
        await bed.job("second", 2, template="pair")
        waiting = await bed.waits("second")
        assert condition(waiting, "Placed")[:2] == ("False", "NoRoom")
        assert waiting.status.waiting_for
        assert set(await bed.allocated()) == {
            name for name in await bed.allocated() if name.startswith("first-")
        }
        assert {rule["metadata"]["labels"][LABEL] for rule in await bed.rules()} == {"first"}
        for pod in ("first-0", "first-1"):
            await bed.end(pod)
        await bed.phase("second", "Running")
        await bed.phase("first", "Finished")
        await until("the rules of the first are gone", lambda: _only_of(bed, "second"))


async def _only_of(bed: Bed, gang: str) -> bool:
    return {rule["metadata"]["labels"][LABEL] for rule in await bed.rules()} == {gang}


async def test_a_gang_that_does_not_fit_the_cluster_is_told_so_and_whether_nodes_would_help() -> (
    None
):
    async with Bed(nodes=1).up() as bed, bed.controller():
        await bed.template("triple", 3)  # No three of the four are linked.
        await bed.job("odd", 1, template="triple")
        gang = await bed.waits("odd")
        assert condition(gang, "Placed")[:2] == ("False", "Never")
        await bed.job("huge", 3, template="pair")
        gang = await bed.waits("huge")
        assert condition(gang, "Placed")[:2] == ("False", "NoRoom")
        assert not await bed.allocated()


async def test_c46_a_claim_shared_in_a_gang_is_allocated_once_and_few_writes_are_made() -> None:
    async with Bed().up() as bed, bed.controller():
        await bed.claim("shared", 2)
        for index in range(3):
            await bed.pod(f"s-{index}", gang="s", size="3", claim="shared")
        await bed.phase("s", "Running")
        assert len(set((await bed.bound("s")).values())) == 1
        claim = await bed.read_claim("shared")
        assert len(claim["status"]["reservedFor"]) == 3
        writes = [
            call
            for call in bed.api.faults.calls
            if call.verb == "patch" and call.name == "shared" and call.subresource == "status"
        ]
        assert len(writes) == 1 + 3  # the allocation by us, each pod by kube-scheduler


async def test_members_beyond_the_minimum_come_one_by_one_up_to_the_maximum() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        await bed.gang("el", size=2, maxSize=3)
        for index in range(4):
            await bed.pod(f"el-{index}", gang="el")
        await bed.phase("el", "Running")
        await until("the third is held", lambda: _held(bed, "el", 3))
        await until("it is bound", lambda: _bound(bed, "el", 3))
        # The fourth is beyond maxSize: it would fit, and is not asked for.
        assert len(await bed.allocated()) == 3


async def _held(bed: Bed, name: str, count: int) -> bool:
    gang = await bed.see(name)
    plan = gang.status.plan if gang is not None else None
    return plan is not None and plan.step is Step.HOLD and len(plan.held) == count


async def _bound(bed: Bed, gang: str, count: int) -> bool:
    return len(await bed.bound(gang)) == count


async def test_c49_finished_members_count_as_done_and_do_not_come_back() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        await bed.job("j", 2)
        await bed.phase("j", "Running")
        await bed.end("j-0")
        await until("its claim is free", lambda: _claims(bed, 1))
        gang = await bed.see("j")
        assert gang is not None
        assert gang.status.phase == "Running"
        await bed.end("j-1")
        gang = await bed.phase("j", "Finished")
        await until("no rule is left", lambda: _no_rules(bed))
        assert condition(gang, "Satisfied")[1] == "Finished"


async def _claims(bed: Bed, count: int) -> bool:
    return len(await bed.allocated()) == count


async def _no_rules(bed: Bed) -> bool:
    return not await bed.rules()


async def test_a_gang_of_bare_pods_goes_with_its_last_pod() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        pods = [await bed.pod(f"b-{index}", gang="b", size="2") for index in range(2)]
        gang = await bed.phase("b", "Running")
        assert {one.uid for one in gang.owners} == {pod["metadata"]["uid"] for pod in pods}
        for pod in pods:
            await bed.api.delete(PODS, pod["metadata"]["name"], namespace=SPACE)
        await bed.api.delete(GANGS, "b", namespace=SPACE)  # as the garbage collector does
        await until("no rule is left", lambda: _no_rules(bed))
        await until("no claim is allocated", lambda: _claims(bed, 0))


async def test_two_jobs_with_one_label_are_two_gangs() -> None:
    async with Bed().up() as bed, bed.controller():
        for name in ("a", "b"):
            await bed.job(name, 2, label="same")
        await until("four are bound", lambda: _bound(bed, "same", 4))
        gangs = (await bed.api.list(GANGS, namespace=SPACE)).items
        assert {gang["spec"]["owner"]["name"] for gang in gangs} == {"a", "b"}
        assert {gang["metadata"]["labels"][LABEL] for gang in gangs} == {"same"}


async def test_pods_with_the_scope_name_are_one_gang_whoever_made_them() -> None:
    async with Bed().up() as bed, bed.controller():
        for name in ("a", "b"):
            await bed.job(name, 2, label="same", size="4", scope="name")
        await until("four are bound", lambda: _bound(bed, "same", 4))
        (gang,) = (await bed.api.list(GANGS, namespace=SPACE)).items
        assert "owner" not in gang["spec"]
        assert {one["name"] for one in gang["metadata"]["ownerReferences"]} == {"a", "b"}
