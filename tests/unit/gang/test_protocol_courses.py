"""Courses of the gang protocol: what goes wrong on the way, and what is waited for."""

import pytest

from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.actions import Journal, StartWait, WaitUntil
from dragoon.gang.protocol.deciding import decide
from dragoon.gang.protocol.model import GangView, Settings
from dragoon.kube.port import CLAIMS, NODES, SLICES, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE
from tests.property.gang_scheduler import devices_of, node_of
from tests.property.gang_stage import Stage, at, running

_PLACED = (Step.FENCE, Step.WAIT, Step.COMMIT, Step.VERIFY)


@pytest.mark.parametrize("step", _PLACED)
async def test_c45_a_member_deleted_before_ungating_leaves_nothing_behind(step: Step) -> None:
    stage = Stage()
    await stage.start(3)
    await stage.pilot_until(at(step))
    await stage.pilot.step()
    await stage.pilot.step()

    await stage.cluster.delete((await stage.cluster.crew())[1])
    await stage.cluster.claim_controller()

    await stage.undone()


@pytest.mark.parametrize("step", _PLACED)
async def test_a_claim_deleted_before_ungating_leaves_nothing_behind(step: Step) -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(at(step))
    await stage.pilot.step()
    name = (await stage.all(CLAIMS))[0]["metadata"]["name"]
    await stage.cluster.api.delete(CLAIMS, name, namespace=NAMESPACE)

    await stage.pilot_until(at(Step.RELEASE))
    view = await stage.view()

    assert view.plan is not None
    assert view.plan.reason == f"claim {name} is gone"


@pytest.mark.parametrize("step", [Step.COMMIT, Step.VERIFY])
async def test_a_node_that_goes_between_plan_and_bind_is_planned_around(step: Step) -> None:
    stage = Stage(nodes=2)
    await stage.start(2)
    await stage.pilot_until(at(step))
    await stage.cluster.api.delete(NODES, "node-0")
    await stage.cluster.api.delete(SLICES, "node-0-gpus")

    view = await stage.until(running(2))

    assert {member.node for member in view.members} == {"node-1"}


@pytest.mark.parametrize("step", [Step.WAIT, Step.COMMIT, Step.VERIFY])
@pytest.mark.parametrize("change", ["tainted", "gone"])
async def test_a_device_that_fails_between_plan_and_bind_is_planned_around(
    step: Step, change: str
) -> None:
    stage = Stage(nodes=2, gpus=1)
    await stage.start(1)
    await stage.pilot_until(at(step))
    taint = {"key": "dragoon.dev/lost", "effect": "NoSchedule"}
    devices = [{"name": "gpu-0", "taints": [taint]}] if change == "tainted" else []
    body = {"spec": {"devices": devices}}
    await stage.cluster.api.patch(SLICES, "node-0-gpus", body)

    await stage.pilot_until(lambda view: view.plan is None or view.plan.serial == 2)
    left = [claim for claim in await stage.all(CLAIMS) if devices_of(claim)]

    assert not any(node_of(claim["status"]["allocation"]) == "node-0" for claim in left)


async def test_a_rule_that_somebody_deletes_while_it_is_needed_voids_the_wait() -> None:
    stage = Stage()
    await stage.start(1)
    await stage.pilot_until(lambda view: at(Step.WAIT)(view) and view.wait is not None)
    await stage.cluster.api.delete(
        TAINT_RULES, (await stage.all(TAINT_RULES))[0]["metadata"]["name"]
    )
    first = stage.pilot.wait
    assert first is not None
    stage.pilot.tick = first.until + 5.0

    view = await stage.pilot_until(lambda view: view.wait is not None and view.wait != first)

    assert len(await stage.all(TAINT_RULES)) == 1
    assert view.wait is not None
    assert view.wait.started == first.until + 5.0


async def test_a_rule_that_is_deleted_during_the_commit_undoes_it() -> None:
    stage = Stage()
    await stage.start(2)
    await stage.pilot_until(at(Step.VERIFY))
    await stage.cluster.api.delete(
        TAINT_RULES, (await stage.all(TAINT_RULES))[0]["metadata"]["name"]
    )

    await stage.pilot_until(at(Step.RELEASE))
    await stage.undone()


async def test_a_member_that_no_longer_fits_its_node_undoes_the_round_before_a_gate_goes() -> None:
    stage = Stage(nodes=1, cpu=3)
    await stage.start(2)
    await stage.pilot_until(at(Step.VERIFY))
    await stage.take_cpu("node-0")

    await stage.pilot_until(at(Step.RELEASE))
    view = await stage.view()

    assert view.plan is not None
    assert "no CPU" in view.plan.reason
    await stage.undone()


async def test_claims_are_listed_again_after_the_last_write_before_a_gate_goes() -> None:
    stage = Stage()
    await stage.start(2)
    stage.pilot.lags = True
    await stage.pilot.informers()
    stranger = await stage.cluster.create_pod()
    await stage.cluster.claim_controller()
    await stage.cluster.scheduler.sync()
    await stage.cluster.scheduler.attempt()
    await stage.pilot_until(at(Step.VERIFY))
    await stage.cluster.scheduler.land()  # The informers do not show it.

    await stage.pilot_until(at(Step.RELEASE))

    assert all(pod["spec"].get("schedulingGates") for pod in await stage.cluster.crew())
    assert stranger["metadata"]["uid"]


async def test_the_same_view_gives_the_same_actions() -> None:
    stage = Stage()
    await stage.start(3)
    for _ in range(40):
        view = await stage.view()
        assert decide(view, Settings()) == decide(view, Settings())
        await stage.pilot.step()
        stage.pilot.tick = max(stage.pilot.tick, stage.pilot.wake or 0.0)


async def test_a_journal_is_never_written_beside_something_else() -> None:
    stage = Stage()
    await stage.start(3)
    for _ in range(60):
        actions = decide(await stage.view(), Settings())
        writes = [one for one in actions if not isinstance(one, StartWait)]
        assert len(writes) == 1 or not any(isinstance(one, Journal) for one in writes)
        await stage.pilot.step()
        stage.pilot.tick = max(stage.pilot.tick, stage.pilot.wake or 0.0)
    assert at(Step.HOLD)(await stage.view()) or stage.pilot.journaled


async def test_the_time_that_journaling_the_fence_takes_is_waited_already() -> None:
    stage = Stage()
    await stage.start(3)

    def stands(view: GangView) -> bool:
        return any(isinstance(one, StartWait) for one in decide(view, Settings()))

    await stage.pilot_until(stands)
    stage.pilot.tick = stood = 100.0
    await stage.pilot.step()
    while stage.pilot.pending:
        stage.pilot.tick += 0.4
        await stage.pilot.step()
    view = await stage.view()

    assert at(Step.WAIT)(view)
    assert decide(view, Settings())[-1] == WaitUntil(stood + Settings().least_wait)


async def test_on_nodes_for_gangs_only_there_is_no_rule_and_no_wait() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.cluster.start()
    taint = {"key": "dragoon.dev/gang-only", "effect": "NoSchedule"}
    devices = [{"name": f"gpu-{index}", "taints": [taint]} for index in range(2)]
    await stage.cluster.api.patch(SLICES, "node-0-gpus", {"spec": {"devices": devices}})
    await stage.cluster.create_gang(2)
    await stage.parts()

    await stage.pilot_until(at(Step.HOLD))

    assert await stage.all(TAINT_RULES) == ()
    assert stage.pilot.tick == 0.0


async def test_a_plan_made_anew_in_the_same_pools_waits_no_second_time() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(1)
    await stage.rival()
    await stage.pilot_until(at(Step.WAIT))
    await stage.cluster.scheduler.land()
    await stage.pilot_until(lambda view: view.plan is not None and view.plan.serial == 2)
    over = stage.pilot.tick

    await stage.pilot_until(at(Step.HOLD))

    assert stage.pilot.tick == over


async def test_a_successor_in_a_pool_that_is_held_waits_for_nobody() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    await stage.cluster.delete((await stage.cluster.crew())[0])
    for _ in range(3):
        await stage.parts()
    over = stage.pilot.tick

    await stage.pilot_until(lambda view: all(not member.gated for member in view.members))

    assert stage.pilot.tick == over


async def test_a_successor_waits_where_the_rule_had_been_deleted_meanwhile() -> None:
    stage = Stage(nodes=1, gpus=2)
    await stage.start(2)
    await stage.until(lambda view: running(2)(view) and at(Step.HOLD)(view))
    name = (await stage.all(TAINT_RULES))[0]["metadata"]["name"]
    await stage.cluster.api.delete(TAINT_RULES, name)
    await stage.pilot_until(lambda view: bool(view.rules))
    await stage.cluster.delete((await stage.cluster.crew())[0])
    for _ in range(3):
        await stage.parts()
    over = stage.pilot.tick

    await stage.pilot_until(lambda view: all(not member.gated for member in view.members))

    assert stage.pilot.tick >= over + 1.0
