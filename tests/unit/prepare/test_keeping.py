"""Keeping node, journal and API server in agreement: tidying, reconciling, broken entries."""

import errno
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoon.errors import DeviceBusyError, StateError
from dragoon.prepare.effects import state_error
from dragoon.prepare.effects_memory import Faults, MemoryDisk, MemoryEffects
from dragoon.prepare.observing import Counted, Repaired, Reported, Swept
from dragoon.prepare.paths import temporary
from tests.unit.prepare.keeping import PATHS, a_pass, keep_going
from tests.unit.prepare.scene import Scene, device, result


async def test_point_9_and_c29_a_lost_or_changed_spec_is_back_within_a_second(
    scene: Scene,
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    loops = await keep_going(scene, engine)
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
    loops = await keep_going(scene, engine)
    await a_pass(scene, 1)
    done, told = len(effects.performed), len(scene.events)

    await a_pass(scene, 1)
    await a_pass(scene, 1)

    assert (len(effects.performed), len(scene.events)) == (done, told)
    loops.cancel()


async def test_the_number_of_prepared_claims_is_told(scene: Scene) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    loops = await keep_going(scene, engine)
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


class BadSector(MemoryEffects):
    """A process whose disk does not give the bytes of one file."""

    def __init__(self, disk: MemoryDisk, path: Path, number: int) -> None:
        super().__init__(disk)
        self.path = path
        self.number = number

    def read(self, path: Path) -> bytes | None:
        data = super().read(path)
        if path == self.path and data is not None:
            damage = OSError(self.number, "")
            raise state_error("read", path, damage) from damage
        return data


@pytest.mark.parametrize("number", [errno.EIO, errno.EBADMSG, errno.EUCLEAN])
async def test_c32_an_entry_that_the_disk_does_not_give_costs_its_claim_alone(
    scene: Scene, number: int
) -> None:
    engine = await scene.started()
    hurt, well = await scene.claim("hurt"), await scene.claim("well", result(1))
    answers = [await engine.prepare(claim) for claim in (hurt, well)]

    sick = BadSector(scene.disk, PATHS.journal(hurt.uid), number)
    again = scene.engine(sick, wait_s=0.0)
    with pytest.raises(DeviceBusyError, match=f"claim .*{hurt.uid}.* is still prepared"):
        await again.prepare(await scene.claim("thief"))
    await again.prepare(await scene.claim("another", result(2)))
    assert await again.prepare(well) == answers[1]
    await again.unprepare(well)
    await again.start()
    assert {one.uid for one in scene.told(Reported)} == {hurt.uid}

    sick.path = Path("/healed")
    assert await again.prepare(hurt) == answers[0]
    await again.unprepare(hurt)
    assert not [name for name in scene.files if hurt.uid in name]


@pytest.mark.parametrize(
    "later",
    [
        {"steps": [{"step": "mps"}]},
        {"state": "leaving"},
        {"devices": [{"share": {"tier": "mps"}}]},
    ],
    ids=str,
)
async def test_c32_a_claim_of_a_later_version_is_guarded_but_not_touched(
    scene: Scene, later: dict[str, Any]
) -> None:
    engine = await scene.started()
    claim = await scene.claim("one")
    await engine.prepare(claim)
    path = PATHS.journal(claim.uid)
    body = json.loads(scene.disk.files()[path])["entry"]
    if "devices" in later:
        later = {"devices": [body["devices"][0] | later["devices"][0]]}
    data = json.dumps(body | {"version": 4} | later)
    checksum = f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"
    newer = f'{{"checksum": "{checksum}", "entry": {data}}}'.encode()
    MemoryEffects(scene.disk).write(path, newer, 0o600)
    before = scene.files

    older = await scene.started(wait_s=0.0)

    assert "by version 4 of the journal" in scene.told(Reported)[0].problem
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
    loops = await keep_going(scene, engine)
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
