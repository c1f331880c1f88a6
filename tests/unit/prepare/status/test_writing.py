"""The writer of claim status: once, on change only, never in the way of the answer."""

import asyncio

import pytest

from dragoon.api import device_status
from dragoon.api.claims import ClaimRef
from dragoon.errors import ApiConflictError, ApiInvalidError, DragoonError
from dragoon.kube.port import CLAIMS, Object
from dragoon.prepare.engine import Engine
from dragoon.prepare.observing import Finished
from dragoon.prepare.status.outcome import Mark, Marked
from dragoon.prepare.status.writing import Pace
from tests.unit.prepare.scene import DRIVER, Scene, result
from tests.unit.prepare.status.desk import Desk, desk

READY = ("True", "Prepared")
OTHER = {"driver": "nic.example.com", "pool": "p", "device": "eth0"}


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def refused(engine: Engine, claim: ClaimRef) -> DragoonError:
    with pytest.raises(DragoonError) as caught:
        await engine.prepare(claim)
    return caught.value


async def raw(scene: Scene, claim: ClaimRef) -> Object:
    return await scene.api.get(CLAIMS, claim.name, namespace=claim.namespace)


async def test_a_prepared_claim_is_ready_and_written_once(scene: Scene) -> None:
    claim = await scene.claim("a", result(0), result(1))
    async with desk(scene) as here:
        await here.engine.prepare(claim)
        assert await here.told(claim) == [READY, READY]
        for _ in range(3):
            await here.engine.prepare(claim)
            await here.settle()
        assert here.writes == 1
        assert not await here.events(claim)


async def test_the_answer_comes_though_the_status_cannot_be_written(scene: Scene) -> None:
    claim = await scene.claim("a")
    hang = scene.api.faults.hang(verb="patch")
    async with desk(scene) as here:
        assert await here.engine.prepare(claim)
        here.hand_over()
        await hang.reached.wait()
        assert await here.engine.prepare(claim)
        hang.lift()
        assert await here.told(claim) == [READY]


async def test_a_burst_is_answered_first_and_then_written(scene: Scene) -> None:
    claim = await scene.claim("a")
    async with desk(scene, pace=Pace(prepared_s=0.2)) as here:
        await here.engine.prepare(claim)
        assert await here.told(claim) == []
        await here.later(0.2)
        assert await here.told(claim) == [READY]


async def test_an_outage_is_waited_out_with_growing_pauses(scene: Scene) -> None:
    claim = await scene.claim("a")
    async with desk(scene) as here:
        await here.engine.prepare(claim)
        outage = scene.api.faults.fail(times=None, verb="patch")
        assert await here.told(claim) == []
        await here.later(0.01)
        assert outage.hits == 1
        for hits in range(2, 6):
            await here.later(60)
            assert outage.hits == hits
        outage.lift()
        await here.later(60)
        assert await here.told(claim) == [READY]


async def test_somebody_elses_write_in_between_is_not_lost(scene: Scene) -> None:
    claim = await scene.claim("a", result(), result(0, **OTHER))
    async with desk(scene) as here:
        await here.engine.prepare(claim)
        hang = scene.api.faults.hang(verb="patch")
        here.hand_over()
        await hang.reached.wait()
        held = await raw(scene, claim)
        held["status"]["devices"] = [{**OTHER, "data": {"ip": "10.0.0.1"}}]
        await scene.api.replace(CLAIMS, held, subresource="status")
        hang.lift()
        await here.later(1)
    other, mine = await here.statuses(claim)
    assert other == {**OTHER, "data": {"ip": "10.0.0.1"}}
    assert mine["driver"] == DRIVER


async def test_another_claim_of_that_name_is_not_touched(scene: Scene) -> None:
    claim = await scene.claim("a")
    async with desk(scene, pace=Pace(prepared_s=1)) as here:
        await here.engine.prepare(claim)
        await here.settle()
        await scene.api.delete(CLAIMS, "a", namespace="team-a")
        other = await scene.claim("a")
        await here.later(1)
        assert await here.statuses(other) == []
        assert here.writes == 0


async def test_a_final_refusal_is_told_once_in_status_and_event(scene: Scene) -> None:
    claim = await scene.claim("a", result(9))
    pod = await scene.pod("p", claim)
    async with desk(scene, on_refusal=device_status.EVICT) as here:
        for _ in range(4):
            error = await refused(here.engine, claim)
            assert await here.told(claim) == [("False", "UnknownDevice")]
        (event,) = await here.events(claim)
        assert here.writes == 1
    found = await raw(scene, claim)
    told = device_status.wants_eviction(found, DRIVER)
    assert told is not None
    assert told.message == str(error)
    assert (event["reason"], event["type"], event["note"]) == (
        "UnknownDevice",
        "Warning",
        str(error),
    )
    assert event["regarding"]["kind"] == "Pod"
    assert event["regarding"]["uid"] == pod["metadata"]["uid"]
    assert "series" not in event


async def test_the_next_process_does_not_tell_it_again(scene: Scene) -> None:
    claim = await scene.claim("a", result(9))
    for _ in range(2):
        async with desk(scene) as here:
            await refused(here.engine, claim)
            assert await here.told(claim) == [("False", "UnknownDevice")]
            events = await here.events(claim)
    assert len(events) == 1
    assert events[0]["regarding"]["kind"] == "ResourceClaim"
    assert here.writes == 1


async def test_the_event_is_on_the_claim_when_several_pods_use_it(scene: Scene) -> None:
    claim = await scene.claim("a", result(9))
    for name in ("p", "q"):
        await scene.pod(name, claim)
    async with desk(scene) as here:
        await refused(here.engine, claim)
        await here.settle()
        (event,) = await here.events(claim)
    assert event["regarding"]["kind"] == "ResourceClaim"


async def test_the_next_pod_on_a_claim_made_by_hand_is_told_too(scene: Scene) -> None:
    claim = await scene.claim("a", result(9))
    async with desk(scene) as here:
        for name in ("p", "q"):
            await scene.deallocate(claim)
            await scene.allocate(claim, result(9))
            await scene.pod(name, claim)
            await refused(here.engine, claim)
            assert await here.told(claim) == [("False", "UnknownDevice")]
        events = await here.events(claim)
    assert sorted(one["regarding"]["name"] for one in events) == ["p", "q"]


async def test_success_after_a_refusal_makes_the_claim_ready(scene: Scene) -> None:
    claim = await scene.claim("a", result(3))
    found = scene.gpus.found
    async with desk(scene) as here:
        scene.gpus.found = type(found)(gpus=found.gpus[:3], simulated=True)
        await refused(here.engine, claim)
        assert await here.told(claim) == [("False", "UnknownDevice")]
        scene.gpus.found = found
        await here.engine.prepare(claim)
        assert await here.told(claim) == [READY]


async def test_a_refusal_after_waiting_names_the_holder(scene: Scene) -> None:
    first, second = await scene.claim("a"), await scene.claim("b")
    async with desk(scene, await scene.started(wait_s=0)) as here:
        await here.engine.prepare(first)
        await refused(here.engine, second)
        assert await here.told(second) == [("False", "DeviceBusy")]
        (told,) = device_status.refusals(await raw(scene, second), DRIVER)
        assert str(first) in told.message
        assert not told.is_final


async def test_after_an_unprepare_the_entries_go_with_the_allocation(scene: Scene) -> None:
    claim = await scene.claim("a")
    async with desk(scene, pace=Pace(prepared_s=0, released_s=30)) as here:
        await here.engine.prepare(claim)
        assert await here.told(claim) == [READY]
        await here.engine.unprepare(claim)
        await scene.deallocate(claim)
        await here.later(30)
        assert await here.statuses(claim) == []
        assert here.writes == 1


async def test_of_a_claim_that_stays_allocated_they_are_removed(scene: Scene) -> None:
    claim = await scene.claim("a", result(), result(0, **OTHER))
    async with desk(scene, pace=Pace(prepared_s=0, released_s=30)) as here:
        held = await raw(scene, claim)
        held["status"]["devices"] = [OTHER]
        await scene.api.replace(CLAIMS, held, subresource="status")
        await here.engine.prepare(claim)
        await here.settle()
        assert len(await here.statuses(claim)) == 2
        await here.engine.unprepare(claim)
        await here.settle()
        assert len(await here.statuses(claim)) == 2
        await here.later(30)
        assert await here.statuses(claim) == [OTHER]


async def test_a_claim_prepared_again_meanwhile_stays_ready(scene: Scene) -> None:
    claim = await scene.claim("a")
    async with desk(scene) as here:
        for _ in range(2):
            await here.engine.prepare(claim)
            assert await here.told(claim) == [READY]
            await here.engine.unprepare(claim)
        await here.engine.prepare(claim)
        await here.later(100)
        assert await here.told(claim) == [READY]


async def test_what_an_earlier_process_could_not_write_is_written_at_the_next_comparison(
    scene: Scene,
) -> None:
    claim = await scene.claim("a")
    await (await scene.started()).prepare(claim)
    async with desk(scene) as here:
        await here.engine.reconcile()
        assert await here.told(claim) == [READY]
        await here.engine.reconcile()
        await here.settle()
        assert here.writes == 1
        held = await raw(scene, claim)
        held["status"].pop("devices")
        await scene.api.replace(CLAIMS, held, subresource="status")
        await here.engine.reconcile()
        assert await here.told(claim) == [READY]


async def test_a_write_that_is_refused_for_good_is_tried_seldom(scene: Scene) -> None:
    claim = await scene.claim("a")
    no_right = scene.api.faults.fail(
        times=None, verb="patch", error=lambda: ApiInvalidError("requires verb", status=422)
    )
    async with desk(scene) as here:
        await here.engine.prepare(claim)
        await here.settle()
        for _ in range(5):
            await here.engine.reconcile()
            await here.settle()
        assert no_right.hits == 1
        no_right.lift()
        await here.later(600)
        assert await here.told(claim) == [READY]


async def test_an_api_server_that_drops_the_field_is_not_written_to_again(scene: Scene) -> None:
    first, second = await scene.claim("a"), await scene.claim("b", result(9))
    scene.api.faults.drop(CLAIMS, "status", "devices")
    async with desk(scene) as here:
        await here.engine.prepare(first)
        await here.settle()
        for _ in range(3):
            await refused(here.engine, second)
            await here.settle()
        assert len(await here.events(second)) == 1
        assert here.writes == 1


async def test_a_config_block_without_effect_is_told_in_one_event(scene: Scene) -> None:
    foreign = {"opaque": {"driver": "gpu.nvidia.com", "parameters": {"kind": "GpuConfig"}}}
    claim = await scene.claim("a", config=[foreign])
    await scene.pod("p", claim)
    async with desk(scene) as here:
        for _ in range(3):
            await here.engine.prepare(claim)
            await here.settle()
        (event,) = await here.events(claim)
    assert event["reason"] == "ConfigIgnored"
    assert "config[0]: is for driver gpu.nvidia.com" in event["note"]
    assert event["regarding"]["kind"] == "Pod"


async def test_marks_are_written_and_taken_away_again(scene: Scene) -> None:
    claim = await scene.claim("a")
    mark = Mark("MemoryPressure", True, "Above90Percent", "nearly full")
    async with desk(scene) as here:
        await here.engine.prepare(claim)
        await here.settle()
        for marks, types in (
            ((mark,), {"Ready", "Enforced", "MemoryPressure"}),
            ((), {"Ready", "Enforced"}),
        ):
            for _ in range(2):
                here.writer.observe(Marked(claim, "MemoryPressure", marks))
                await here.settle()
            (entry,) = await here.statuses(claim)
            assert {one["type"] for one in entry["conditions"]} == types
        assert here.writes == 3


async def test_marks_that_come_and_go_for_ever_are_written_a_bounded_number_of_times(
    scene: Scene,
) -> None:
    claim = await scene.claim("a")
    mark = Mark("MemoryPressure", True, "Above90Percent", "nearly full")
    async with desk(scene, pace=Pace(prepared_s=0, burst=5, rest_s=60)) as here:
        await here.engine.prepare(claim)
        await here.settle()
        for turn in range(41):
            here.writer.observe(Marked(claim, mark.type, () if turn % 2 else (mark,)))
            await here.settle()
        assert here.writes == 5
        await here.later(60)
        assert here.writes == 6
        (entry,) = await here.statuses(claim)
        assert mark.type in {one["type"] for one in entry["conditions"]}, "the last one counts"


async def test_conflicts_are_decided_anew_on_what_is_there(scene: Scene) -> None:
    claim = await scene.claim("a")
    conflict = scene.api.faults.fail(
        times=2, verb="patch", error=lambda: ApiConflictError("modified", status=409)
    )
    async with desk(scene) as here:
        await here.engine.prepare(claim)
        for _ in range(2):
            await here.later(1)
        assert await here.told(claim) == [READY]
    assert conflict.hits == 2


async def test_one_claim_that_cannot_be_written_holds_up_no_other(scene: Scene) -> None:
    first, second = await scene.claim("a"), await scene.claim("b", result(1))
    scene.api.faults.hang(verb="patch", when=lambda call: call.name == "a")
    async with desk(scene) as here:
        await here.engine.prepare(first)
        await here.engine.prepare(second)
        here.hand_over()
        await until_written(here, second)


async def until_written(here: Desk, claim: ClaimRef) -> None:
    async with asyncio.timeout(60):
        while not await here.statuses(claim):  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def test_only_what_concerns_claims_is_put_aside(scene: Scene) -> None:
    here = Desk(scene, scene.engine())
    here.writer.observe(Finished("unprepare", ClaimRef("n", "a", "u"), 0.1))
    assert repr(here.writer) == "<StatusWriter claims=0>"


async def test_what_is_due_sooner_than_all_that_waits_is_not_kept_waiting(scene: Scene) -> None:
    first, second = await scene.claim("a"), await scene.claim("b", result(1))
    pace = Pace(prepared_s=0.2, released_s=30)
    async with desk(scene, pace=pace) as here:
        await here.engine.prepare(first)
        await here.later(0.2)
        await here.engine.unprepare(first)
        await here.settle()
        await here.engine.prepare(second)
        assert await here.told(second) == []
        await here.later(0.2)
        assert await here.told(second) == [READY]
        assert await here.statuses(first) != []
        await here.later(30)
        assert await here.statuses(first) == []


async def test_what_a_thread_tells_a_writer_that_sleeps_is_written(scene: Scene) -> None:
    claim = await scene.claim("a")
    mark = Mark("Pressed", is_true=True, reason="High", message="nearly full")
    async with desk(scene) as here:
        await here.engine.prepare(claim)
        await here.settle()
        await asyncio.to_thread(here.writer.observe, Marked(claim, mark.type, (mark,)))
        await here.settle()
        (entry,) = await here.statuses(claim)
    assert "Pressed" in [one["type"] for one in entry["conditions"]]
