"""Claims that were half prepared, and claims that are gone: continued, rolled back or reported."""

import pytest

from dragoon.api.claims import ClaimRef, claim_ref
from dragoon.errors import DeviceBusyError, StateError
from dragoon.kube.port import CLAIMS
from dragoon.prepare.observing import Repaired, Reported
from tests.unit.prepare.keeping import PATHS, a_pass, keep_going
from tests.unit.prepare.scene import Scene, device, gpu, result


async def left_half_prepared(scene: Scene, name: str) -> str:
    """A claim whose plugin process died after the journal was written."""
    claim = await scene.claim(name)
    await scene.half_prepared(claim)
    assert f"state/journal/{claim.uid}.json" in scene.files
    return claim.uid


async def test_a_half_prepared_claim_keeps_its_gpu_and_is_continued(scene: Scene) -> None:
    uid = await left_half_prepared(scene, "one")
    engine = await scene.started(wait_s=0.0)
    with pytest.raises(DeviceBusyError, match=uid):
        await engine.prepare(await scene.claim("thief"))
    held = await scene.api.get(CLAIMS, "one", namespace="team-a")
    assert await engine.prepare(claim_ref(held))


async def test_a_half_prepared_claim_that_went_while_nobody_ran_is_released_at_start(
    scene: Scene,
) -> None:
    uid = await left_half_prepared(scene, "one")
    await scene.api.delete(CLAIMS, "one", namespace="team-a")

    loops = await keep_going(scene, await scene.started())

    assert [event.uid for event in scene.told(Repaired)] == [uid]
    assert scene.files == {}
    loops.cancel()


async def test_half_prepared_claims_that_are_gone_are_released(scene: Scene) -> None:
    uid = await left_half_prepared(scene, "one")
    engine = await scene.started()
    loops = await keep_going(scene, engine)
    await a_pass(scene, 60)
    assert scene.told(Repaired) == []

    await scene.api.delete(CLAIMS, "one", namespace="team-a")
    await a_pass(scene, 60)

    assert [event.uid for event in scene.told(Repaired)] == [uid]
    assert scene.files == {}
    loops.cancel()


@pytest.mark.parametrize("how", ["deleted", "replaced", "deallocated", "elsewhere"])
@pytest.mark.parametrize("rebooted", [False, True])
async def test_a_prepared_claim_that_is_gone_is_reported_and_released_only_after_a_reboot(
    scene: Scene, how: str, rebooted: bool
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    if how in {"deallocated", "elsewhere"}:
        await scene.deallocate(claim)
    else:
        await scene.api.delete(CLAIMS, "one", namespace="team-a")
    if how == "elsewhere":
        await scene.allocate(claim, result(0, pool="node-b/gpu"))
    if how == "replaced":
        await scene.claim("one")
    if rebooted:
        scene.disk.reboot("boot-2")
        engine = await scene.started()
    loops = await keep_going(scene, engine)
    assert scene.told(Reported) == [], "a force-deleted pod looks like that for some seconds"

    for _ in range(2):
        await a_pass(scene, 60)
        if not rebooted:
            assert [event.uid for event in scene.told(Reported)] == [claim.uid], "told once"
    assert bool(scene.files) is not rebooted

    await engine.unprepare(claim)
    assert scene.files == {}
    loops.cancel()


async def test_c50_an_api_server_that_is_away_releases_nothing(scene: Scene) -> None:
    await left_half_prepared(scene, "one")
    engine = await scene.started()
    loops = await keep_going(scene, engine)
    await scene.api.delete(CLAIMS, "one", namespace="team-a")
    scene.api.faults.fail(times=None)
    before = scene.files

    await a_pass(scene, 60)
    await a_pass(scene, 60)

    assert scene.files == before
    assert len(scene.told(Reported)) == 1, "told once"
    loops.cancel()


async def allocated_anew_after_half_a_prepare(scene: Scene) -> ClaimRef:
    """A claim with a marker of the first GPU, which has the second one now."""
    claim = await scene.claim("one")
    # Six effects write the journal and the marker; the seventh would begin with the spec.
    await scene.half_prepared(claim, done=6)
    assert scene.disk.files().keys() >= {PATHS.marker(claim.uid, device(0))}
    await scene.deallocate(claim)
    await scene.allocate(claim, result(1))
    return claim


async def test_other_devices_after_a_half_prepared_try_roll_that_back(scene: Scene) -> None:
    claim = await allocated_anew_after_half_a_prepare(scene)

    answer = await (await scene.started()).prepare(claim)

    assert [one.device for one in answer] == [device(1)]
    assert set(scene.disk.files()) == {
        PATHS.journal(claim.uid),
        PATHS.marker(claim.uid, device(1)),
        PATHS.spec(claim.uid),
    }


async def test_the_gpu_of_a_half_prepared_try_is_locked_while_that_is_rolled_back(
    scene: Scene,
) -> None:
    claim = await allocated_anew_after_half_a_prepare(scene)
    engine = await scene.started(lock_s=0.0, wait_s=0.0)

    someone_works_on_it = scene.disk.hold(PATHS.lock, [f"gpu/{gpu(0).address}"], 0.0)
    with someone_works_on_it, pytest.raises(StateError, match=f"gpu/{gpu(0).address}"):
        await engine.prepare(claim)

    assert PATHS.marker(claim.uid, device(0)) in scene.disk.files()
    assert await engine.prepare(claim)
