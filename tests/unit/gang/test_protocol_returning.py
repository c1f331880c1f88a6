"""Successors come back to the place of the one that went, also where that is freed after they come."""

from dataclasses import replace

from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.actions import Action, Note, RequestPlan, WaitUntil
from dragoon.gang.protocol.deciding import decide
from dragoon.gang.protocol.model import GangView, Settings
from dragoon.kube.port import NODES, SLICES
from tests.property.gang_stage import Stage, at, running

_BOUND = Settings().return_wait


async def _with_successors(stage: Stage, *lost: str) -> None:
    """Members on these nodes have failed; there are new ones, and nothing has been freed yet."""
    await stage.until(lambda view: running(len(view.members))(view) and at(Step.HOLD)(view))
    for made in await stage.cluster.crew():
        if made["spec"]["nodeName"] in lost:
            await stage.cluster.finish(made, "Failed")
    await stage.cluster.job_controller()
    await stage.cluster.claim_controller(frees=False)
    await stage.cluster.kubelets()


async def _rest(stage: Stage) -> tuple[Action, ...]:
    """The controller alone, until it waits for something; no time passes."""
    for _ in range(30):
        actions = decide(await stage.view(), Settings())
        await stage.pilot.step()
        while stage.pilot.pending:
            await stage.pilot.step()
        if all(isinstance(one, Note | WaitUntil) for one in actions):
            return actions
    raise AssertionError(f"it never waits: {actions}")


async def _free(stage: Stage) -> None:
    """The claim controller deletes the claims of pods that have ended, then lets go of them."""
    for _ in range(3):
        await stage.cluster.claim_controller()


def _gated(view: GangView) -> list[str]:
    return [one.ref.name for one in view.members if one.gated]


async def _placed(stage: Stage) -> set[tuple[str, str]]:
    """Slots of living members, and their nodes."""
    view = await stage.pilot_until(lambda view: at(Step.HOLD)(view) and not _gated(view))
    assert view.plan is not None
    return {(one.slot, one.node) for one in view.plan.held if not one.vacated}


async def test_a_successor_waits_while_the_claim_of_the_one_that_went_is_being_freed() -> None:
    stage = Stage(nodes=2, gpus=1)
    await stage.start(1)
    await _with_successors(stage, "node-0")

    waits = await _rest(stage)

    view = await stage.view()
    assert _gated(view)
    assert at(Step.HOLD)(view)
    (note,) = (one for one in waits if isinstance(one, Note))
    assert "to be freed on node node-0, the place of pod" in note.message
    assert not note.warning
    await _free(stage)
    over = stage.pilot.tick
    assert await _placed(stage) == {("0", "node-0")}
    assert stage.pilot.tick == over


async def test_a_claim_that_is_never_freed_holds_its_successor_up_only_for_so_long() -> None:
    stage = Stage(nodes=2, gpus=1)
    await stage.start(1)
    await _with_successors(stage, "node-0")
    died = stage.pilot.tick
    await _rest(stage)

    stage.pilot.tick = died + _BOUND - 1
    waits = await _rest(stage)

    assert [one.tick for one in waits if isinstance(one, WaitUntil)][-1] == died + _BOUND
    assert _gated(await stage.view())
    stage.pilot.tick = died + _BOUND
    assert await _placed(stage) == {("0", "node-1")}


async def test_a_controller_that_is_started_anew_waits_no_longer() -> None:
    stage = Stage(nodes=2, gpus=1)
    await stage.start(1)
    await _with_successors(stage, "node-0")
    died = stage.pilot.tick
    await _rest(stage)
    stage.pilot.tick = died + 10

    stage.pilot.crash()
    waits = await _rest(stage)

    assert [one.tick for one in waits if isinstance(one, WaitUntil)][-1] == died + _BOUND


async def test_a_gang_that_is_started_again_is_planned_when_all_places_are_free() -> None:
    stage = Stage(nodes=3, gpus=1)
    await stage.start(2)
    await _with_successors(stage, "node-0", "node-1")
    asked = len(stage.pilot.asked)

    await _rest(stage)

    assert len(stage.pilot.asked) == asked
    await _free(stage)
    assert await _placed(stage) == {("0", "node-0"), ("1", "node-1")}
    assert [len(one.pods) for one in stage.pilot.asked[asked:]] == [2]


async def test_a_place_whose_device_has_failed_is_not_waited_for() -> None:
    stage = Stage(nodes=2, gpus=1)
    await stage.start(1)
    taint = {"key": "dragoon.dev/lost", "effect": "NoSchedule"}
    await stage.until(lambda view: running(1)(view) and at(Step.HOLD)(view))
    devices = [{"name": "gpu-0", "taints": [taint]}]
    await stage.cluster.api.patch(SLICES, "node-0-gpus", {"spec": {"devices": devices}})
    await _with_successors(stage, "node-0")
    died = stage.pilot.tick

    assert await _placed(stage) == {("0", "node-1")}
    assert stage.pilot.tick < died + _BOUND


async def test_a_place_on_a_node_that_is_gone_is_not_waited_for() -> None:
    stage = Stage(nodes=2, gpus=1)
    await stage.start(1)
    await _with_successors(stage, "node-0")
    await stage.cluster.api.delete(NODES, "node-0")
    died = stage.pilot.tick

    assert await _placed(stage) == {("0", "node-1")}
    assert stage.pilot.tick < died + _BOUND


async def test_a_place_that_the_node_would_not_give_again_is_not_waited_for() -> None:
    stage = Stage(nodes=2, gpus=1)
    await stage.start(1)
    await _with_successors(stage, "node-0")
    await _rest(stage)
    view = await stage.view()
    (uid,) = (one.ref.uid for one in view.members if one.gated)

    waits = decide(view, Settings())
    goes = decide(replace(view, closed=frozenset((uid,))), Settings())

    assert any(isinstance(one, Note) for one in waits)
    assert goes == (RequestPlan((uid,)),)
