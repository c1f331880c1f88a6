"""The file of fatal errors on a disk that forgets what was not synced."""

import errno
import random
from contextlib import suppress
from pathlib import Path

import pytest

from dragoon.app.health import HealthFile
from dragoon.errors import StateError
from dragoon.health.port import FakeMemory, Memory
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.effects_memory import Crash, Faults, MemoryDisk, MemoryEffects
from dragoon.prepare.paths import Paths

PATHS = Paths("gpu.dragoon.dev", Path("/state"), Path("/cdi"))
_EFFECTS = 4
"""Of one write: write, sync, rename, sync of the folder."""


def disk() -> MemoryDisk:
    made = MemoryDisk("boot-1")
    effects = MemoryEffects(made)
    effects.make_folder(PATHS.state_folder, 0o750)
    effects.sync_folder(PATHS.state_folder.parent)
    return made


def a_file(on: MemoryDisk, faults: Faults | None = None) -> HealthFile:
    return HealthFile(MemoryEffects(on, faults), PATHS)


@pytest.fixture(params=["fake", "file in memory", "file on the host"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    if request.param == "fake":
        return FakeMemory()
    if request.param == "file in memory":
        return a_file(disk())
    return HealthFile(HostEffects(), Paths("gpu.dragoon.dev", tmp_path, tmp_path))


def test_what_was_written_last_is_read(memory: Memory) -> None:
    assert memory.read() is None
    for data in (b"one", b"another, longer", b""):
        memory.write(data)
        assert memory.read() == data
    assert memory.boot_id()


def test_a_power_cut_after_a_write_forgets_nothing() -> None:
    on = disk()
    a_file(on).write(b"old")
    a_file(on).write(b"new")
    on.power_cut("boot-2")
    assert a_file(on).read() == b"new"
    assert a_file(on).boot_id() == "boot-2"


@pytest.mark.parametrize("point", range(_EFFECTS))
@pytest.mark.parametrize("seed", range(5))
def test_whoever_dies_in_between_leaves_the_old_or_the_new(point: int, seed: int) -> None:
    on = disk()
    a_file(on).write(b"old")
    with suppress(Crash):
        a_file(on, Faults(crash_at=point)).write(b"new")
    assert a_file(on).read() in {b"old", b"new"}
    on.power_cut("boot-2", luck=random.Random(seed))  # noqa: S311
    assert a_file(on).read() in {b"old", b"new"}
    a_file(on).write(b"newest")
    assert a_file(on).read() == b"newest"


@pytest.mark.parametrize("point", range(_EFFECTS))
def test_an_effect_that_fails_is_an_error_and_a_retry_does_all_of_it(point: int) -> None:
    on = disk()
    file = a_file(on, Faults(failures={point: errno.ENOSPC}))
    with pytest.raises(StateError):
        file.write(b"new")
    file.write(b"new")
    on.power_cut("boot-2")
    assert file.read() == b"new"


def test_the_number_of_effects_is_what_the_tests_walk_through() -> None:
    effects = MemoryEffects(disk())
    HealthFile(effects, PATHS).write(b"x")
    assert len(effects.performed) == _EFFECTS


def test_two_plugins_write_one_after_the_other() -> None:
    on = disk()
    with on.hold(PATHS.lock, ["health"], 0.0), pytest.raises(StateError, match="lock"):
        HealthFile(MemoryEffects(on), PATHS, patience=0.01).write(b"x")
