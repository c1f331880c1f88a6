"""Unprepare asks the API server whether a pod of this node still has the claim."""

import asyncio

import pytest

from dragoon.errors import ClaimInUseError
from dragoon.kube.port import PODS
from tests.unit.prepare.scene import Scene, ended, pass_time, until


async def test_c28_unprepare_is_refused_while_a_pod_here_runs_with_the_claim(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("shared")
    await scene.pod("first", claim)
    await scene.pod("elsewhere", claim, node="node-b")
    await engine.prepare(claim)
    before = scene.files

    call = asyncio.create_task(engine.unprepare(claim))
    await pass_time(scene, call)

    with pytest.raises(ClaimInUseError, match=r"by team-a/first \(") as caught:
        call.result()
    assert caught.value.retryable
    assert scene.files == before


async def test_unprepare_of_a_pod_whose_end_is_not_reported_yet_waits_for_the_report(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    pod = await scene.pod("job", claim)
    await engine.prepare(claim)

    call = asyncio.create_task(engine.unprepare(claim))
    await until(lambda: scene.clock.sleeping > 0)
    pod["status"]["containerStatuses"] = [ended()]
    await scene.api.replace(PODS, pod, subresource="status")
    await pass_time(scene, call)

    call.result()
    assert scene.clock.now() < 3
    assert scene.files == {}


async def test_unprepare_of_what_was_never_answered_asks_nobody(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await scene.pod("user", claim)
    scene.api.faults.calls.clear()

    await engine.unprepare(claim)

    assert scene.api.faults.calls == []
