"""The disk in memory: what survives a power cut, and faults on order."""

import errno
import random
from pathlib import Path

import pytest

from dragoon.errors import StateError
from dragoon.prepare.effects_memory import Crash, Faults, MemoryDisk, MemoryEffects
from dragoon.prepare.storing import replace_file

FOLDER = Path("/state")
FILE = FOLDER / "file"


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk("boot-1")
    effects = MemoryEffects(disk)
    effects.make_folder(FOLDER, 0o700)
    effects.sync_folder(Path("/"))
    return disk


def test_only_synced_bytes_under_synced_names_survive_a_power_cut(disk: MemoryDisk) -> None:
    effects = MemoryEffects(disk)
    replace_file(effects, FILE, b"old", 0o600, durable=True)
    effects.sync_folder(FOLDER)
    replace_file(effects, FILE, b"new", 0o600, durable=True)

    disk.power_cut("boot-2")

    assert disk.files() == {FILE: b"old"}
    assert MemoryEffects(disk).boot_id() == "boot-2"


def test_a_synced_name_of_unsynced_bytes_is_an_empty_file_after_a_power_cut(
    disk: MemoryDisk,
) -> None:
    effects = MemoryEffects(disk)
    replace_file(effects, FILE, b"new", 0o600)
    effects.sync_folder(FOLDER)

    disk.power_cut("boot-2")

    assert disk.files() == {FILE: b""}


def test_a_removal_that_was_not_synced_is_undone_by_a_power_cut(disk: MemoryDisk) -> None:
    effects = MemoryEffects(disk)
    replace_file(effects, FILE, b"old", 0o600, durable=True)
    effects.sync_folder(FOLDER)
    effects.remove(FILE)

    disk.power_cut("boot-2")

    assert disk.files() == {FILE: b"old"}


def test_a_folder_that_was_not_synced_into_its_parent_is_lost(disk: MemoryDisk) -> None:
    effects = MemoryEffects(disk)
    inner = FOLDER / "inner"
    effects.make_folder(inner, 0o700)
    replace_file(effects, inner / "file", b"x", 0o600, durable=True)
    effects.sync_folder(inner)

    disk.power_cut("boot-2")

    assert disk.files() == {}


def test_luck_lets_some_unsynced_changes_survive_in_their_order(disk: MemoryDisk) -> None:
    seen = set()
    for seed in range(40):
        effects = MemoryEffects(disk)
        effects.remove(FILE)
        effects.sync_folder(FOLDER)
        for data in (b"a", b"b"):
            replace_file(effects, FILE, data, 0o600, durable=True)
        disk.power_cut("boot-2", luck=random.Random(seed))  # noqa: S311 - a seeded fault
        seen.add(disk.files().get(FILE))

    assert seen == {None, b"a", b"b"}


def test_wiped_folders_lose_everything(disk: MemoryDisk) -> None:
    effects = MemoryEffects(disk)
    replace_file(effects, FILE, b"x", 0o600, durable=True)
    effects.sync_folder(FOLDER)

    disk.power_cut("boot-2", wiped=[FOLDER])

    assert disk.files() == {}


def test_a_process_that_crashed_does_nothing_any_more(disk: MemoryDisk) -> None:
    effects = MemoryEffects(disk, Faults(crash_at=1))
    effects.write(FILE, b"1234", 0o600)
    with pytest.raises(Crash):
        effects.write(FOLDER / "second", b"1234", 0o600)

    for attempt in (lambda: effects.remove(FILE), lambda: effects.read(FILE), effects.boot_id):
        with pytest.raises(Crash):
            attempt()
    assert disk.files() == {FILE: b"1234", FOLDER / "second": b"12"}, "a torn write"
    assert effects.performed == [f"write {FILE}"]


@pytest.mark.parametrize(
    ("number", "retryable"),
    [(errno.ENOSPC, True), (errno.EIO, True), (errno.EROFS, False), (errno.EACCES, False)],
)
def test_an_effect_fails_as_ordered(disk: MemoryDisk, number: int, retryable: bool) -> None:
    effects = MemoryEffects(disk, Faults(failures={0: number}))
    with pytest.raises(StateError) as caught:
        effects.write(FILE, b"1234", 0o600)
    assert caught.value.retryable is retryable
    assert caught.value.hint

    effects.write(FILE, b"1234", 0o600)
    assert disk.files() == {FILE: b"1234"}
