"""Keeping node, journal and API server in agreement: tidying, reconciling, reboots."""

import asyncio
import errno
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoon.api.claims import claim_ref
from dragoon.errors import DeviceBusyError, DeviceLostError, StateError
from dragoon.gpu.model import Inventory
from dragoon.kube.port import CLAIMS
from dragoon.prepare.effects_memory import Crash, Faults, MemoryEffects
from dragoon.prepare.engine import Engine
from dragoon.prepare.observing import Counted, Repaired, Reported, Swept
from dragoon.prepare.paths import temporary
from tests.unit.prepare.scene import Scene, device, gpu, result, settings, until

PATHS = settings(Path("/node")).paths


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def run(scene: Scene, engine: Engine) -> asyncio.Task[None]:
    """Starts the loops of an engine."""
    task = asyncio.create_task(engine.run())
    await until(lambda: scene.clock.sleeping == 2)
    return task


async def a_pass(scene: Scene, seconds: float) -> None:
    """Lets the loops do what is due within that time."""
    scene.clock.advance(seconds)
    await until(lambda: scene.clock.sleeping == 2)


async def test_point_9_and_c29_a_lost_or_changed_spec_is_back_within_a_second(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    loops = await run(scene, engine)
    await a_pass(scene, 1)
    before = scene.files
    outside = MemoryEffects(scene.disk)
    damages: list[Callable[[], None]] = [
        lambda: outside.remove(PATHS.spec(claim.uid)),
        lambda: outside.write(PATHS.spec(claim.uid), b"{}", 0o644),
        lambda: outside.remove(PATHS.marker(claim.uid, device(0))),
        lambda: scene.disk.reboot("boot-1", wiped=[PATHS.cdi_folder]),
    ]
    for damage in damages:
        damage()
        assert scene.files != before
        scene.events.clear()
        await a_pass(scene, 1)
        assert scene.files == before
        assert [event.uid for event in scene.told(Repaired)] == [claim.uid]
    loops.cancel()


async def test_nothing_is_read_or_written_while_nothing_changes(scene: Scene) -> None:
    effects = MemoryEffects(scene.disk)
    engine = scene.engine(effects)
    await engine.start()
    await engine.prepare(await scene.claim("one"))
    loops = await run(scene, engine)
    await a_pass(scene, 1)
    done, told = len(effects.performed), len(scene.events)

    await a_pass(scene, 1)
    await a_pass(scene, 1)

    assert (len(effects.performed), len(scene.events)) == (done, told)
    loops.cancel()


async def test_the_number_of_prepared_claims_is_told(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    loops = await run(scene, engine)
    await engine.prepare(claim)
    await a_pass(scene, 1)
    await engine.unprepare(claim)
    await a_pass(scene, 1)
    assert [event.prepared for event in scene.told(Counted)] == [0, 1, 0]
    loops.cancel()


async def test_c29_a_prepare_writes_a_lost_spec_again_and_answers_the_same(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    answer = await engine.prepare(claim)
    before = scene.files
    MemoryEffects(scene.disk).remove(PATHS.spec(claim.uid))

    assert await engine.prepare(claim) == answer
    assert scene.files == before


async def test_c29_specs_of_ours_without_an_entry_are_removed_at_start_and_no_others(
    scene: Scene,
) -> None:
    await scene.started()
    outside = MemoryEffects(scene.disk)
    foreign = PATHS.cdi_folder / "k8s.gpu.nvidia.com-claim-0a.json"
    outside.write(PATHS.spec("0a"), b"{}", 0o644)
    outside.write(PATHS.marker("0a", device(0)), b"", 0o644)
    outside.write(foreign, b"{}", 0o644)

    await scene.started()

    assert scene.disk.files() == {foreign: b"{}"}


async def test_what_a_dead_process_left_half_written_is_removed_at_start(scene: Scene) -> None:
    await scene.started()
    outside = MemoryEffects(scene.disk)
    for path in (PATHS.journal("0a"), PATHS.spec("0a"), PATHS.marker("0a", device(0))):
        outside.write(temporary(path), b"x", 0o600)

    await scene.started()

    assert scene.files == {}


async def test_c29_restart_with_an_empty_cdi_folder_restores_every_prepared_claim(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claims = [await scene.claim(f"c{n}", result(n)) for n in range(3)]
    for claim in claims:
        await engine.prepare(claim)
    before = scene.files
    scene.disk.reboot("boot-1", wiped=[PATHS.cdi_folder])

    await scene.started()

    assert scene.files == before


async def test_c32_a_broken_entry_is_set_aside_and_its_devices_stay_guarded(
    scene: Scene,
) -> None:
    engine = await scene.started()
    broken, good = await scene.claim("broken"), await scene.claim("good", result(1))
    answers = [await engine.prepare(claim) for claim in (broken, good)]
    spec = scene.files[f"cdi/{PATHS.spec(broken.uid).name}"]
    MemoryEffects(scene.disk).write(PATHS.journal(broken.uid), b"{", 0o600)

    again = await scene.started(wait_s=0.0)

    (told,) = scene.told(Reported)
    assert told.uid == broken.uid
    assert f"state/journal/{broken.uid}.json.broken" in scene.files
    assert scene.files[f"cdi/{PATHS.spec(broken.uid).name}"] == spec
    assert await again.prepare(good) == answers[1]
    with pytest.raises(DeviceBusyError, match=f"claim .*{broken.uid}.* is still prepared"):
        await again.prepare(await scene.claim("thief"))
    assert await again.prepare(broken) == answers[0]
    for claim in (broken, good):
        await again.unprepare(claim)
    assert scene.files == {}


async def test_c32_a_claim_of_a_later_version_is_guarded_but_not_touched(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    path = PATHS.journal(claim.uid)
    body = json.loads(scene.disk.files()[path])["entry"] | {"version": 3}
    data = json.dumps(body | {"steps": [*body["steps"], {"step": "mig"}]})
    checksum = f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"
    newer = f'{{"checksum": "{checksum}", "entry": {data}}}'.encode()
    MemoryEffects(scene.disk).write(path, newer, 0o600)
    before = scene.files

    older = await scene.started(wait_s=0.0)

    assert "by version 3 of the journal" in scene.told(Reported)[0].problem
    with pytest.raises(DeviceBusyError, match="team-a/one"):
        await older.prepare(await scene.claim("thief"))
    for call in (older.prepare, older.unprepare):
        with pytest.raises(StateError, match="does not understand"):
            await call(claim)
    await older.reconcile()
    assert scene.files == before


async def test_c32_a_claim_whose_entry_is_broken_is_unprepared_all_the_same(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    MemoryEffects(scene.disk).write(PATHS.journal(claim.uid), b"{", 0o600)
    await engine.unprepare(claim)
    assert scene.files == {}


async def test_c20_after_a_reboot_claims_are_prepared_again_with_the_same_answer(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    answer = await engine.prepare(claim)
    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])

    engine = await scene.started()
    assert not any(name.startswith("cdi/") for name in scene.files), "not before it is asked for"
    assert await engine.prepare(claim) == answer
    assert f"cdi/{PATHS.spec(claim.uid).name}" in scene.files


async def test_c20_a_spec_that_outlived_a_reboot_is_not_left_for_containers(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    scene.disk.reboot("boot-2")

    await scene.started()

    assert set(scene.files) == {f"state/journal/{claim.uid}.json"}


async def test_c20_what_was_prepared_before_a_reboot_holds_nothing_back(scene: Scene) -> None:
    engine = await scene.started()
    await engine.prepare(await scene.claim("old"))
    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])
    engine = await scene.started()
    assert await engine.prepare(await scene.claim("new"))


async def test_c20_after_a_reboot_another_card_in_the_slot_is_refused(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    scene.disk.reboot("boot-2", wiped=[PATHS.cdi_folder])
    scene.gpus.found = Inventory(gpus=(gpu(0, uuid="GPU-new"),), simulated=True)
    engine = await scene.started()

    with pytest.raises(DeviceLostError, match="GPU-new sits in that slot now"):
        await engine.prepare(claim)
    await engine.unprepare(claim)
    assert scene.files == {}


async def left_half_prepared(scene: Scene, name: str) -> str:
    """A claim whose plugin process died after the journal was written."""
    claim = await scene.claim(name)
    effects = MemoryEffects(scene.disk)
    engine = scene.engine(effects)
    await engine.start()
    effects.faults = Faults(crash_at=len(effects.performed) + 5)
    with pytest.raises(Crash):
        await engine.prepare(claim)
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

    loops = await run(scene, await scene.started())

    assert [event.uid for event in scene.told(Repaired)] == [uid]
    assert scene.files == {}
    loops.cancel()


async def test_half_prepared_claims_that_are_gone_are_released(scene: Scene) -> None:
    uid = await left_half_prepared(scene, "one")
    engine = await scene.started()
    loops = await run(scene, engine)
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
    loops = await run(scene, engine)
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
    loops = await run(scene, engine)
    await scene.api.delete(CLAIMS, "one", namespace="team-a")
    scene.api.faults.fail(times=None)
    before = scene.files

    await a_pass(scene, 60)
    await a_pass(scene, 60)

    assert scene.files == before
    assert len(scene.told(Reported)) == 1, "told once"
    loops.cancel()


@pytest.mark.parametrize(
    "number", [errno.EROFS, errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES, errno.EPERM]
)
async def test_a_folder_that_cannot_be_written_is_told_once_and_stops_nothing(
    scene: Scene, number: int
) -> None:
    await (await scene.started()).prepare(claim := await scene.claim("one"))
    effects = MemoryEffects(scene.disk)
    engine = scene.engine(effects, wait_s=0.0)
    await engine.start()
    loops = await run(scene, engine)
    before = scene.files
    MemoryEffects(scene.disk).remove(PATHS.spec(claim.uid))
    effects.faults = Faults(every=number)

    await a_pass(scene, 1)
    await a_pass(scene, 1)
    (told,) = scene.told(Reported)
    assert "cannot write" in told.problem
    with pytest.raises(StateError, match="cannot write"):
        await engine.prepare(await scene.claim("two", result(1)))

    effects.faults = Faults()
    await a_pass(scene, 1)
    assert scene.files == before
    loops.cancel()


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "run the plugin as root, or give it this folder"),
        (errno.EINVAL, "keep the plugin's state on a local disk"),
        (errno.EOPNOTSUPP, "keep the plugin's state on a local disk"),
    ],
)
async def test_starting_on_a_folder_of_others_or_one_that_cannot_be_synced_says_so(
    scene: Scene, number: int, advice: str
) -> None:
    effects = MemoryEffects(scene.disk)
    await scene.engine(effects).start()
    at = next(n for n, done in enumerate(effects.performed) if done.startswith("sync folder"))

    with pytest.raises(StateError, match="cannot sync") as caught:
        await scene.started(faults=Faults(failures={at: number}))

    assert advice in caught.value.hint
    assert not caught.value.retryable


async def test_starting_on_a_folder_that_cannot_be_made_says_so(scene: Scene) -> None:
    with pytest.raises(StateError, match="cannot make folder") as caught:
        await scene.started(faults=Faults(every=errno.EROFS))
    assert "read-write" in caught.value.hint


async def test_other_devices_after_a_half_prepared_try_roll_that_back(scene: Scene) -> None:
    claim = await scene.claim("one")
    effects = MemoryEffects(scene.disk)
    engine = scene.engine(effects)
    await engine.start()
    # Six effects write the journal and the marker; the seventh would begin with the spec.
    effects.faults = Faults(crash_at=len(effects.performed) + 6)
    with pytest.raises(Crash):
        await engine.prepare(claim)
    assert scene.disk.files().keys() >= {PATHS.marker(claim.uid, device(0))}
    await scene.deallocate(claim)
    await scene.allocate(claim, result(1))

    answer = await (await scene.started()).prepare(claim)

    assert [one.device for one in answer] == [device(1)]
    assert set(scene.disk.files()) == {
        PATHS.journal(claim.uid),
        PATHS.marker(claim.uid, device(1)),
        PATHS.spec(claim.uid),
    }


async def test_the_journal_is_durable_before_the_first_effect_and_goes_after_the_last(
    scene: Scene,
) -> None:
    effects = MemoryEffects(scene.disk)
    engine = scene.engine(effects)
    await engine.start()
    claim = await scene.claim("one")
    effects.performed.clear()
    await engine.prepare(claim)
    first = next(n for n, done in enumerate(effects.performed) if "markers" in done)
    assert effects.performed[:first] == [
        f"write {temporary(PATHS.journal(claim.uid))}",
        f"sync {temporary(PATHS.journal(claim.uid))}",
        f"rename {PATHS.journal(claim.uid)}",
        f"sync folder {PATHS.journal_folder}",
    ]

    effects.performed.clear()
    await engine.unprepare(claim)
    assert effects.performed == [
        f"remove {PATHS.spec(claim.uid)}",
        f"remove {PATHS.marker(claim.uid, device(0))}",
        f"remove {PATHS.journal(claim.uid)}",
    ]


async def test_every_comparison_is_told_with_its_time(scene: Scene) -> None:
    engine = scene.engine()
    await engine.start()
    await engine.reconcile()
    await engine.reconcile()
    assert len(scene.told(Swept)) == 2
