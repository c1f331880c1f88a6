"""Courses of the gang protocol: members that die, end, come anew or cannot be bound."""

import msgspec

from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.actions import Journal, RequestPlan
from dragoon.gang.protocol.deciding import decide
from dragoon.gang.protocol.model import Settings
from dragoon.kube.port import CLAIMS, GANGS, PODS, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE, claim_body
from tests.property.gang_scheduler import Raw
from tests.property.gang_stage import Stage, at, running


async def test_a_member_that_loses_its_claim_while_others_are_ungated_is_placed_again() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.pilot.step()
    await stage.pilot.step()
    gated = next(p for p in await stage.cluster.crew() if p["spec"].get("schedulingGates"))
    claim = await stage.claim_of(gated)
    finalizers: Raw = {"metadata": {"finalizers": []}}
    name = claim["metadata"]["name"]
    stage.pilot.pending.clear()
    await stage.cluster.api.patch(CLAIMS, name, finalizers, namespace=NAMESPACE)
    await stage.cluster.api.delete(CLAIMS, name, namespace=NAMESPACE)
    await stage.pilot_until(at(Step.HOLD))
    still = await stage.cluster.api.get(PODS, gated["metadata"]["name"], namespace=NAMESPACE)
    assert still["spec"]["schedulingGates"], "without its claim it would be allocated by itself"

    body = claim_body(name, 1, claim["metadata"]["ownerReferences"][0])
    await stage.cluster.api.create(CLAIMS, body)
    await stage.until(running(2))


async def test_a_dead_member_is_replaced_on_its_devices_under_the_rule() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    devices = set(await stage.cluster.holders())
    for _ in range(3):
        await stage.cluster.create_pod()
    await stage.cluster.delete((await stage.cluster.crew())[0])

    await stage.until(running(2))

    held = await stage.cluster.holders()
    assert set(held) == devices
    assert not stage.cluster.scheduler.decided, "a stranger got the slot"


async def test_a_whole_gang_that_restarts_is_placed_all_together_again() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    for _ in range(3):
        await stage.cluster.create_pod()
    for pod in await stage.cluster.crew():
        await stage.cluster.finish(pod, "Failed")

    await stage.until(running(2))

    assert [len(request.pods) for request in stage.pilot.asked] == [2, 2]
    assert not stage.cluster.scheduler.decided


async def test_members_beyond_the_minimum_come_one_by_one_up_to_the_maximum() -> None:
    stage = Stage(nodes=1, gpus=4, cpu=8)
    await stage.start(2, job=False)
    await stage.cluster.api.patch(GANGS, "crew", {"spec": {"maxSize": 3}}, namespace=NAMESPACE)
    for _ in range(2):
        await stage.cluster.create_pod(gang="crew")

    await stage.until(lambda view: running(3)(view) and at(Step.HOLD)(view))
    for _ in range(10):
        await stage.pilot.step()

    assert [len(request.pods) for request in stage.pilot.asked] == [2, 1]
    crew = await stage.cluster.crew()
    assert len([pod for pod in crew if pod["spec"].get("schedulingGates")]) == 1


async def test_c49_finished_members_count_as_done() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    first, second = await stage.cluster.crew()
    await stage.cluster.finish(first)
    await stage.parts()
    await stage.cluster.finish(second, "Failed")

    view = await stage.until(lambda view: sum(one.phase == "Running" for one in view.members) == 1)

    assert sum(one.phase == "Succeeded" for one in view.members) == 1


async def test_an_empty_slot_is_held_for_so_long_and_then_given_up() -> None:
    stage = Stage(nodes=2, gpus=1, slot_grace=60)
    await stage.start(2, job=False)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    gone = next(p for p in await stage.cluster.crew() if p["spec"]["nodeName"] == "node-0")
    await stage.cluster.delete(gone)
    await stage.parts()
    await stage.parts()
    died = stage.pilot.tick

    while stage.pilot.tick < died + 59:
        await stage.pilot.step()
        assert len(await stage.all(TAINT_RULES)) == 2
        stage.pilot.tick += 1
    stage.pilot.tick += 2
    for _ in range(6):
        await stage.pilot.step()

    (rule,) = await stage.all(TAINT_RULES)
    assert rule["spec"]["deviceSelector"]["pool"] == "node-1/gpu"


async def test_a_member_for_which_there_is_no_room_elsewhere_is_not_evicted() -> None:
    stage = Stage(nodes=1, cpu=2)
    await stage.start(1)
    await stage.pilot_until(at(Step.UNGATE))
    await stage.take_cpu("node-0")
    await stage.pilot_until(at(Step.HOLD))
    await stage.schedule()

    await stage.pilot_until(lambda _view: bool(stage.pilot.notes))

    assert stage.evictions == []
    assert RequestPlan((stage.pilot.asked[-1].pods[0],), spare=True) in stage.pilot.asked


async def test_a_marked_member_that_is_bound_after_all_is_not_evicted() -> None:
    stage = Stage(nodes=2, cpu=2)
    await stage.start(1)
    await stage.until(lambda view: running(1)(view) and at(Step.HOLD)(view))
    view = await stage.view()
    assert view.plan is not None
    marked = msgspec.structs.replace(view.plan.held[0], vacated="2026-01-01T00:00:00Z")
    plan = msgspec.structs.replace(view.plan, held=(marked,))
    body = {"status": {"plan": msgspec.to_builtins(plan)}}
    await stage.cluster.api.patch(GANGS, "crew", body, namespace=NAMESPACE, subresource="status")

    (journal,) = decide(await stage.view(), Settings())

    assert isinstance(journal, Journal)
    assert journal.plan is not None
    assert journal.plan.held[0].vacated == ""
