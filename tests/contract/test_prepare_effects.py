"""The side-effect port of prepare: the same tests on a real file system and on the one in memory."""

import os
import socket
import subprocess
import sys
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


def test_a_folders_mode_is_set_whatever_the_umask(subject: Subject) -> None:
    folder = subject.root / "open"
    subject.effects.make_folder(folder, 0o700)
    subject.effects.set_mode(folder, 0o1777)

    assert subject.effects.mode(folder) == 0o1777
    assert subject.effects.mode(subject.root / "missing") is None


def test_a_patch_changes_only_the_bytes_that_it_is_for(subject: Subject) -> None:
    path = subject.root / "file"
    subject.effects.write(path, b"0123456789", 0o600)
    subject.effects.patch(path, 3, b"xyz")

    assert subject.effects.read(path) == b"012xyz6789"
    assert subject.effects.peek(path, 5) == b"012xy"
    assert subject.effects.peek(subject.root / "missing", 5) is None
    with pytest.raises(StateError):
        subject.effects.patch(subject.root / "missing", 0, b"x")


def test_a_file_moves_into_another_folder_and_replaces_what_is_there(subject: Subject) -> None:
    inner = subject.root / "inner"
    subject.effects.make_folder(inner, 0o755)
    subject.effects.write(inner / "file", b"old", 0o600)
    subject.effects.write(subject.root / "draft", b"new", 0o600)
    subject.effects.rename(subject.root / "draft", inner / "file")

    assert subject.effects.read(inner / "file") == b"new"
    assert subject.effects.names(subject.root) == ("inner",)


def test_a_tree_is_removed_with_all_that_is_in_it(subject: Subject) -> None:
    inner = subject.root / "tree/inner"
    subject.effects.make_folder(inner, 0o755)
    subject.effects.write(inner / "file", b"", 0o600)
    subject.effects.remove_tree(subject.root / "tree")
    subject.effects.remove_tree(subject.root / "tree")

    assert subject.effects.names(subject.root) == ()


def test_a_folder_is_stamped_anew_when_something_in_it_goes(subject: Subject) -> None:
    inner = subject.root / "inner"
    subject.effects.make_folder(inner, 0o755)
    subject.effects.write(inner / "file", b"", 0o600)
    before = subject.effects.stamps(subject.root)
    assert [one.name for one in before] == ["inner"]
    subject.effects.remove(inner / "file")

    assert subject.effects.stamps(subject.root) != before


# What a container may have put where a file of ours was; only the real file system has these.


def put_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_folder(path: Path) -> None:
    path.mkdir()


def put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("put", [put_link, put_pipe, put_folder, put_socket])
def test_what_a_container_put_in_place_of_a_file_is_neither_followed_nor_opened(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    path = tmp_path / "usage"
    put(path)
    effects = HostEffects()

    assert effects.peek(path, 10) is None
    with pytest.raises(StateError, match="not a regular file any more"):
        effects.patch(path, 0, b"x")


LEASE = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_file_that_a_container_has_a_lease_on_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "usage"
    path.write_bytes(b"0123456789")
    effects = HostEffects()
    with subprocess.Popen(
        [sys.executable, "-c", LEASE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as container:
        assert container.stdout is not None
        assert container.stdin is not None
        assert container.stdout.readline() == b"held\n"

        # The kernel would keep whoever opens it for 45 s, and then open it all the same.
        assert effects.peek(path, 10) is None
        with pytest.raises(StateError, match="not a regular file any more"):
            effects.patch(path, 0, b"x")
        container.stdin.close()
    assert effects.peek(path, 10) == b"0123456789"


def test_a_tree_is_removed_however_deep_a_container_made_it(tmp_path: Path) -> None:
    """Deeper than Python's stack, and than a path may be long."""
    tree = tmp_path / "tree"
    tree.mkdir()
    folder = os.open(tree, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("folder", dir_fd=folder)
        os.symlink("/", "link", dir_fd=folder)
        inner = os.open("folder", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    for name in ("wide", "side", "by side"):
        os.mkdir(name, dir_fd=folder)
        os.mkfifo(f"{name}.pipe", dir_fd=folder)
    os.close(folder)

    HostEffects().remove_tree(tree)

    assert not tree.exists()


def test_a_link_in_place_of_a_tree_is_neither_followed_nor_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    (tmp_path / "tree").symlink_to(kept)

    with pytest.raises(StateError):
        HostEffects().remove_tree(tmp_path / "tree")
    assert (kept / "file").read_text() == "kept"


def test_removing_a_tree_follows_no_link_out_of_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(kept)
    HostEffects().remove_tree(tree)

    assert (kept / "file").read_text() == "kept"
    assert not tree.exists()
