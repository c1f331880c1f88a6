"""A journal entry that was damaged under a running container is written anew (case C32)."""

import asyncio
import errno
from typing import Any

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.opaque_config import TimeSlice
from dragoon.errors import StateError
from dragoon.kube.port import CLAIMS, PODS
from dragoon.prepare.effects_memory import Faults, MemoryEffects
from dragoon.prepare.engine import Engine
from dragoon.prepare.mig_steps import MakeInstance, UseInstance
from dragoon.prepare.observing import Repaired, Reported
from dragoon.prepare.paths import temporary
from tests.unit.prepare.migging import H100, PATHS, MigScene
from tests.unit.prepare.scene import Scene, result, until
from tests.unit.prepare.sharing import asks, pod_with_claims, share, sharing_scene

DAMAGE = (b"", b"{", b"\xff\x00", b"[]", b'{"checksum":"sha256:00","entry":{}}')


def damage(scene: Scene, claim: ClaimRef, data: bytes = b"{") -> None:
    MemoryEffects(scene.disk).write(PATHS.journal(claim.uid), data, 0o600)


async def pod_with(scene: Scene, *results: dict[str, Any], tier: str = "") -> ClaimRef:
    """A pod with one claim of these devices."""
    config = {"c": [asks(tier)]} if tier else None
    _, claims = await pod_with_claims(scene, "p", {"c": results}, config=config)
    return claims["c"]


def without_the_damaged(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if not name.endswith(".broken")}


@pytest.mark.parametrize("data", DAMAGE)
async def test_c32_the_entry_of_a_whole_gpu_is_as_it_was_and_no_file_was_touched(
    data: bytes,
) -> None:
    scene = Scene()
    engine = await scene.started()
    claim = await pod_with(scene, result())
    answer = await engine.prepare(claim)
    before = scene.files
    damage(scene, claim, data)

    await engine.reconcile()

    assert without_the_damaged(scene.files) == before
    assert [type(event) for event in scene.events if event in told(scene)] == [Reported, Repaired]
    assert await engine.prepare(claim) == answer
    await engine.unprepare(claim)
    assert scene.files == {}


def told(scene: Scene) -> list[object]:
    return [*scene.told(Reported), *scene.told(Repaired)]


@pytest.mark.parametrize("while_down", [False, True])
async def test_c32_a_mig_claim_gets_back_what_was_made_for_it(while_down: bool) -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await pod_with(scene, scene.mig_result("3g.40gb", 4))
    await engine.prepare(claim)
    before, entries = scene.files, scene.entries()
    damage(scene, claim)
    if while_down:
        engine = await scene.started()

    await engine.reconcile()

    assert without_the_damaged(scene.files) == before
    assert scene.entries() == entries
    assert any(isinstance(step, MakeInstance) for step in scene.entries()[0].steps)
    await engine.unprepare(claim)
    assert (scene.there(), scene.files) == ([], {})
    assert not scene.card().card.mode.enabled


async def test_c32_an_administrators_instance_is_not_taken_for_ours() -> None:
    scene = MigScene(H100)
    theirs = scene.make("3g.40gb", 4)
    engine = await scene.started()
    claim = await pod_with(scene, scene.mig_result("3g.40gb", 4))
    await engine.prepare(claim)
    damage(scene, claim)

    await engine.reconcile()

    assert [type(step) for step in scene.entries()[0].steps if hasattr(step, "part")] == [
        UseInstance
    ]
    await engine.unprepare(claim)
    assert [one.uuid for one in scene.card().instances] == [theirs.uuid]


@pytest.mark.parametrize(
    "left", [None, b"\xff", b'{"type":"cardRecord","changes":' + b"[" * 100_000]
)
async def test_c32_without_a_record_an_instance_counts_as_somebody_elses(
    left: bytes | None,
) -> None:
    """None: as left by a version of the journal that wrote none."""
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await pod_with(scene, scene.mig_result("3g.40gb", 4))
    await engine.prepare(claim)
    MemoryEffects(scene.disk).remove(PATHS.card_record(claim.uid))
    if left is not None:
        MemoryEffects(scene.disk).write(PATHS.card_record(claim.uid), left, 0o644)
    damage(scene, claim)

    await engine.reconcile()
    await engine.unprepare(claim)

    assert scene.there() == [("3g.40gb", 4)]


async def test_c32_a_mig_claim_that_ends_before_it_is_rebuilt_leaves_nothing() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await pod_with(scene, scene.mig_result("3g.40gb", 4))
    await engine.prepare(claim)
    damage(scene, claim)

    await engine.unprepare(claim)

    assert (scene.there(), scene.files) == ([], {})
    assert not scene.card().card.mode.enabled


@pytest.mark.parametrize("tier", [Tier.HAMI, Tier.NONE])
async def test_c32_the_limits_of_a_share_stay_where_they_are(tier: Tier) -> None:
    scene = sharing_scene(tier, interval=TimeSlice.LONG)
    engine = await scene.started()
    claim = await pod_with(scene, share(0, "4Gi"), tier=tier)
    await engine.prepare(claim)
    before, numbers = scene.files, region_numbers(scene)
    damage(scene, claim)

    await engine.reconcile()

    assert without_the_damaged(scene.files) == before
    assert region_numbers(scene) == numbers, "a process may have it mapped"
    await engine.unprepare(claim)
    assert (scene.files, scene.disk.cards.time_slices) == ({}, {})


async def test_a_draft_of_a_region_goes_and_regions_stay_while_an_entry_cannot_be_read() -> None:
    """Whatever claim the entry is of, it may need any region, and nobody needs a draft."""
    scene = sharing_scene(Tier.HAMI)
    engine = await scene.started()
    effects = MemoryEffects(scene.disk)
    regions = [PATHS.region(number * 8, "main") for number in "ab"]
    for path in regions:
        effects.make_folder(path, 0o711)
        for draft in (temporary(path), temporary(path.with_name(f"{path.name}.preload"))):
            effects.write(draft, b"", 0o644)
    effects.write(PATHS.journal("7d3c6a3e-57a5-4d0e-9d3e-6f0f3f1f2a3b"), b"{", 0o600)
    scene.api.faults.fail(times=None)

    await engine.reconcile()

    assert effects.names(PATHS.region_folder) == tuple(path.name for path in regions)


def region_numbers(scene: Scene) -> dict[str, int]:
    effects = MemoryEffects(scene.disk)
    return {stamp.name: stamp.changed_ns for stamp in effects.stamps(PATHS.region_folder)}


async def test_c32_time_slices_go_back_with_a_claim_that_is_gone_before_it_is_rebuilt() -> None:
    scene = sharing_scene(Tier.NONE, interval=TimeSlice.LONG)
    engine = await scene.started()
    claim = await pod_with(scene, share(0, "1Gi"), tier=Tier.NONE)
    await engine.prepare(claim)
    damage(scene, claim)
    await scene.api.delete(CLAIMS, claim.name, namespace=claim.namespace)

    await engine.unprepare(claim)

    assert (scene.files, scene.disk.cards.time_slices) == ({}, {})


async def test_a_damaged_entry_whose_pod_is_gone_is_told_once_and_keeps_its_card() -> None:
    scene = Scene()
    engine = await scene.started(wait_s=0.0)
    claim = await pod_with(scene, result())
    await engine.prepare(claim)
    damage(scene, claim)
    await scene.api.delete(PODS, "p", namespace=claim.namespace)
    await engine.reconcile()
    scene.clock.advance(61)
    await engine.reconcile()

    problems = [event.problem for event in scene.told(Reported)]
    assert sum("no pod of this node has the claim" in problem for problem in problems) == 1
    assert f"cdi/{PATHS.spec(claim.uid).name}" in scene.files


async def test_a_damaged_entry_of_which_nothing_else_is_left_is_cleared_away() -> None:
    """As a power cut leaves one: its claim has gone, and nobody would ever unprepare it."""
    scene = Scene()
    engine = await scene.started()
    uid = "7d3c6a3e-57a5-4d0e-9d3e-6f0f3f1f2a3b"
    MemoryEffects(scene.disk).write(PATHS.journal(uid), b"", 0o600)

    await engine.reconcile()

    assert scene.files == {}
    assert [event.uid for event in scene.told(Repaired)] == [uid]


async def test_nothing_is_rebuilt_while_the_api_server_is_away_and_then_it_is() -> None:
    scene = Scene()
    engine = await scene.started()
    claim = await pod_with(scene, result())
    await engine.prepare(claim)
    before = scene.files
    damage(scene, claim)
    scene.api.faults.fail(times=None)
    await engine.reconcile()
    assert PATHS.journal(claim.uid) not in scene.disk.files()

    scene.api.faults.clear()
    scene.clock.advance(61)
    await engine.reconcile()

    assert without_the_damaged(scene.files) == before


async def test_other_devices_than_it_was_prepared_with_are_refused_until_it_ends() -> None:
    scene = Scene()
    engine = await scene.started(wait_s=0.0)
    claim = await pod_with(scene, result(0))
    await engine.prepare(claim)
    damage(scene, claim)
    await scene.deallocate(claim)
    await scene.allocate(claim, result(1))

    with pytest.raises(StateError, match="prepared with other devices"):
        await engine.prepare(claim)

    await engine.unprepare(claim)
    assert [one.device for one in await engine.prepare(claim)] == [result(1)["device"]]


async def test_it_is_rebuilt_within_seconds_while_the_process_runs() -> None:
    scene = Scene()
    engine: Engine = await scene.started()
    claim = await pod_with(scene, result())
    await engine.prepare(claim)
    before = scene.files
    loops = asyncio.create_task(engine.run())
    await until(lambda: scene.clock.sleeping == 2)
    damage(scene, claim)

    scene.clock.advance(1)

    await until(lambda: without_the_damaged(scene.files) == before)
    loops.cancel()


async def test_a_time_slice_is_set_again_after_an_unprepare_that_failed_half_way() -> None:
    """The entry still says that the claim is prepared, and no driver tells a time slice."""
    scene = sharing_scene(Tier.NONE, interval=TimeSlice.LONG)
    effects = MemoryEffects(scene.disk)
    engine = await scene.started(effects)
    claim = await pod_with(scene, share(0, "1Gi"), tier=Tier.NONE)
    answer = await engine.prepare(claim)
    slices = dict(scene.disk.cards.time_slices)
    effects.faults = Faults(failures={len(effects.performed) + 4: errno.EIO})
    with pytest.raises(StateError, match="cannot remove"):
        await engine.unprepare(claim)
    assert scene.disk.cards.time_slices == {}

    assert await engine.prepare(claim) == answer
    assert scene.disk.cards.time_slices == slices


async def test_the_claim_of_a_pods_extended_resources_is_found_too() -> None:
    """kube-scheduler made it; only the pod's status names it."""
    scene = Scene()
    engine = await scene.started()
    claim = await scene.claim("one")
    pod = await scene.pod("p", claim)
    pod["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "one"}
    await scene.api.replace(PODS, pod, subresource="status")
    await engine.prepare(claim)
    before = scene.files
    damage(scene, claim)

    await engine.reconcile()

    assert without_the_damaged(scene.files) == before
