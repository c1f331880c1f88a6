"""Members and a node go at every point between the first allocation and the last gate.

Whatever is allocated and open by then: no member starts of a gang that was never whole.
"""

import pytest

from dragoon.api.gang_plan import Step
from racecampaign.wholeness import partial_gangs
from tests.property.gang_cluster import NAMESPACE
from tests.property.gang_history import history
from tests.property.gang_scheduler import Raw
from tests.property.gang_stage import Stage, at, running

_SIZE = 3
_POINTS = (Step.COMMIT, Step.VERIFY, Step.UNGATE)
_ALONE = 40
"""Steps of the controller, at most, until the owner has made the members again."""


async def _stage() -> Stage:
    stage = Stage(nodes=_SIZE, gpus=1)
    await stage.start(_SIZE)
    await stage.pilot_until(at(Step.COMMIT))
    return stage


async def _step(stage: Stage) -> bool:
    """The controller's, and whether it did anything; kube-scheduler is quick."""
    done = await stage.pilot.step()
    if any(not one.gated and not one.node for one in (await stage.view()).members):
        await stage.schedule()
    stage.pilot.tick = max(stage.pilot.tick, stage.pilot.wake or 0.0)
    return done


async def _course(stage: Stage, *, dies: bool) -> list[str]:
    """Two members are deleted, and a node for a while. dies: so does the controller.

    Answers what was wrong when all members ran.
    """
    for pod in sorted(await stage.cluster.crew(), key=_is_bound)[:2]:
        await stage.cluster.delete(pod)
    await stage.cluster.lose_node(f"node-{_SIZE - 1}")
    if dies:
        stage.pilot.crash()
    for _ in range(_ALONE):
        if not await _step(stage):
            break
    await stage.parts()
    await _step(stage)
    await stage.cluster.find_nodes()
    await stage.until(lambda view: running(_SIZE)(view) and at(Step.HOLD)(view))
    return partial_gangs(await history(stage.cluster.api, NAMESPACE), {"crew": _SIZE})


def _is_bound(pod: Raw) -> bool:
    return bool(pod["spec"].get("nodeName"))


@pytest.mark.parametrize("dies", [False, True])
async def test_a_gang_of_which_members_and_a_node_go_is_whole_before_its_first_member_starts(
    *, dies: bool
) -> None:
    points: list[Step] = []
    while True:
        stage = await _stage()
        for _ in points:
            await _step(stage)
        plan = (await stage.view()).plan
        assert plan is not None
        if plan.step not in _POINTS:
            break
        points.append(plan.step)
        assert await _course(stage, dies=dies) == [], f"after {len(points)} steps, in {plan.step}"
    assert set(points) == set(_POINTS)
