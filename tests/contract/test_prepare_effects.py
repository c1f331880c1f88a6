"""The side-effect port of prepare: the same tests on a real file system and on the one in memory."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoon.errors import StateError
from dragoon.prepare.effects import Effects, HostEffects
from dragoon.prepare.effects_memory import MemoryDisk, MemoryEffects
from dragoon.prepare.storing import replace_file


@dataclass(frozen=True)
class Subject:
    effects: Effects
    root: Path
    another_process: Callable[[], Effects]
    mode: Callable[[Path], int]


@pytest.fixture(params=["host", "memory"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    if request.param == "memory":
        disk = MemoryDisk("boot-7")
        root = Path("/node")
        MemoryEffects(disk).make_folder(root, 0o755)
        return Subject(MemoryEffects(disk), root, lambda: MemoryEffects(disk), disk.mode)
    proc = tmp_path / "proc"
    boot_id = proc / "sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("boot-7\n")
    root = tmp_path / "node"
    root.mkdir()
    return Subject(
        HostEffects(proc), root, lambda: HostEffects(proc), lambda p: p.stat().st_mode & 0o777
    )


def test_what_is_written_is_read_with_the_mode_that_was_asked_for(subject: Subject) -> None:
    path = subject.root / "file"
    subject.effects.write(path, b"one", 0o600)
    subject.effects.write(path, b"2", 0o644)

    assert subject.effects.read(path) == b"2"
    assert subject.mode(path) == 0o644


def test_a_folder_is_made_with_its_parents_and_once(subject: Subject) -> None:
    folder = subject.root / "a/b"
    subject.effects.make_folder(folder, 0o700)
    subject.effects.write(folder / "file", b"kept", 0o600)
    subject.effects.make_folder(folder, 0o700)

    assert subject.effects.names(folder) == ("file",)
    assert subject.mode(folder) == 0o700


def test_a_rename_replaces_the_target(subject: Subject) -> None:
    subject.effects.write(subject.root / "old", b"old", 0o600)
    subject.effects.write(subject.root / "new", b"new", 0o644)
    subject.effects.rename(subject.root / "new", subject.root / "old")

    assert subject.effects.names(subject.root) == ("old",)
    assert subject.effects.read(subject.root / "old") == b"new"


def test_removing_is_idempotent(subject: Subject) -> None:
    path = subject.root / "file"
    subject.effects.write(path, b"", 0o600)
    subject.effects.remove(path)
    subject.effects.remove(path)

    assert not subject.effects.exists(path)


def test_what_is_not_there_reads_as_nothing(subject: Subject) -> None:
    missing = subject.root / "missing"

    assert subject.effects.read(missing / "file") is None
    assert subject.effects.names(missing) == ()
    assert subject.effects.stamps(missing) == ()
    assert not subject.effects.exists(missing)
    subject.effects.remove(missing / "file")


def test_changing_what_is_not_there_is_a_final_error_that_names_it(subject: Subject) -> None:
    missing = subject.root / "missing"
    attempts: list[Callable[[], None]] = [
        lambda: subject.effects.write(missing / "file", b"", 0o600),
        lambda: subject.effects.sync(missing),
        lambda: subject.effects.sync_folder(missing),
        lambda: subject.effects.rename(missing, subject.root / "target"),
    ]
    for attempt in attempts:
        with pytest.raises(StateError, match="No such file") as caught:
            attempt()
        assert not caught.value.retryable
        assert str(subject.root) in str(caught.value)


def test_synced_files_and_folders_are_still_the_same(subject: Subject) -> None:
    path = subject.root / "file"
    replace_file(subject.effects, path, b"kept", 0o600, durable=True)
    subject.effects.sync_folder(subject.root)

    assert subject.effects.read(path) == b"kept"
    assert subject.effects.names(subject.root) == ("file",)


def test_a_stamp_changes_with_every_way_to_change_a_file(subject: Subject) -> None:
    path = subject.root / "file"
    seen = [subject.effects.stamps(subject.root)]
    changes: list[Callable[[], None]] = [
        lambda: subject.effects.write(path, b"one", 0o600),
        lambda: replace_file(subject.effects, path, b"two", 0o600),
        lambda: subject.effects.write(path, b"three", 0o600),
        lambda: subject.effects.remove(path),
    ]
    for change in changes:
        change()
        now = subject.effects.stamps(subject.root)
        assert now != seen[-1]
        seen.append(now)


def test_the_boot_id_is_read(subject: Subject) -> None:
    assert subject.effects.boot_id() == "boot-7"


def test_a_key_is_held_against_another_process_and_given_back(subject: Subject) -> None:
    lock = subject.root / "lock"
    other = subject.another_process()
    with subject.effects.lock(lock, ["gpu/1", "claim/a"], 1):
        with (
            pytest.raises(StateError, match="cannot lock gpu/1") as caught,
            other.lock(lock, ["gpu/1"], 0.01),
        ):
            pytest.fail("two hold one key")
        assert caught.value.retryable
        with other.lock(lock, ["gpu/2"], 1):
            pass
    with other.lock(lock, ["gpu/1"], 1):
        pass


def test_a_key_is_held_against_another_thread_which_gets_it_next(subject: Subject) -> None:
    lock = subject.root / "lock"
    order: list[str] = []
    started = threading.Event()

    def second() -> None:
        started.set()
        with subject.effects.lock(lock, ["claim/a"], 30):
            order.append("second")

    thread = threading.Thread(target=second)
    with subject.effects.lock(lock, ["claim/a"], 1):
        thread.start()
        started.wait()
        order.append("first")
    thread.join()

    assert order == ["first", "second"]


def test_a_lock_that_fails_half_way_gives_back_what_it_took(subject: Subject) -> None:
    lock = subject.root / "lock"
    other = subject.another_process()
    with subject.effects.lock(lock, ["b"], 1):
        with pytest.raises(StateError), other.lock(lock, ["a", "b"], 0.01):
            pytest.fail("two hold one key")
        with subject.effects.lock(lock, ["a"], 1):
            pass


def test_a_symbolic_link_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    (tmp_path / "file").symlink_to(outside)

    with pytest.raises(StateError):
        HostEffects().write(tmp_path / "file", b"yours", 0o600)
    assert outside.read_bytes() == b"mine"


def test_the_real_boot_id_is_there() -> None:
    assert len(HostEffects().boot_id()) == len("00000000-0000-0000-0000-000000000000")
