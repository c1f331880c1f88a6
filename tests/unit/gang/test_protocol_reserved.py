"""Courses of a gang for which devices are kept: the fence stands until its members are ungated."""

import pytest

from dragoon.api.gang_plan import Step
from dragoon.kube.port import GANGS, PODS, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE
from tests.property.gang_stage import Stage, at, running

KEPT = ("node-0/gpu", "node-1/gpu")


async def fenced(stage: Stage) -> list[str]:
    return sorted(rule["spec"]["deviceSelector"]["pool"] for rule in await stage.all(TAINT_RULES))


async def full(stage: Stage) -> None:
    """Strangers hold every device; pools are kept for the gang that waits."""
    for _ in range(4):
        await stage.cluster.create_pod(cpu=0)
    await stage.parts()
    await stage.schedule()
    await stage.pilot.reserve(*KEPT)


async def test_what_is_kept_is_fenced_while_the_gang_waits_and_nobody_new_gets_in() -> None:
    stage = Stage()
    await stage.start(3)
    await full(stage)
    for _ in range(5):
        await stage.pilot.step()
    assert await fenced(stage) == sorted(KEPT)
    strangers = await stage.cluster.strangers()
    for pod in strangers[:2]:
        await stage.cluster.delete(pod)
    new = await stage.cluster.create_pod(cpu=0)
    for _ in range(3):
        await stage.parts()
        await stage.schedule()
    found = await stage.cluster.api.get(PODS, new["metadata"]["name"], namespace=NAMESPACE)
    assert not found["spec"].get("nodeName")


@pytest.mark.parametrize("step", [Step.FENCE, Step.WAIT, Step.COMMIT, Step.VERIFY])
async def test_a_round_that_is_taken_back_leaves_the_fence_of_what_is_kept(step: Step) -> None:
    stage = Stage()
    await stage.start(1)
    await stage.pilot.reserve(*KEPT)
    await stage.pilot_until(at(step))
    assert await fenced(stage) == sorted(KEPT)
    await stage.cluster.delete((await stage.cluster.crew())[0])
    await stage.pilot_until(lambda view: view.plan is None)
    deletions = [
        call for call in stage.calls if call.verb == "delete" and call.resource is TAINT_RULES
    ]
    assert not deletions
    assert await fenced(stage) == sorted(KEPT)


@pytest.mark.parametrize("writes", range(12))
async def test_a_controller_that_dies_at_any_write_is_followed_by_one_that_goes_on(
    writes: int,
) -> None:
    stage = Stage()
    await stage.start(2, gpus=2)
    await full(stage)
    for _ in range(writes):
        await stage.pilot.step()
    stage.pilot.crash()
    for pod in await stage.cluster.strangers():
        await stage.cluster.delete(pod)
    await stage.until(running(2))
    await stage.pilot.reserve()
    await stage.pilot_until(lambda view: at(Step.HOLD)(view) and not view.reserved)
    assert await fenced(stage) == sorted(KEPT)


@pytest.mark.parametrize("written", [0, 1, 2])
async def test_what_is_not_kept_any_more_is_open_again_whatever_dies(written: int) -> None:
    stage = Stage()
    await stage.start(3)
    await full(stage)
    for _ in range(5):
        await stage.pilot.step()
    await stage.pilot.reserve()
    for _ in range(written):
        await stage.pilot.step()
    stage.pilot.crash()
    for _ in range(4):
        await stage.pilot.step()
    assert await fenced(stage) == []


async def test_a_gang_that_is_deleted_keeps_nothing() -> None:
    stage = Stage()
    await stage.start(3)
    await full(stage)
    for _ in range(5):
        await stage.pilot.step()
    await stage.cluster.api.delete(GANGS, "crew", namespace=NAMESPACE)
    await stage.pilot.sweep()
    assert await fenced(stage) == []
