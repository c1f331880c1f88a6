"""Names of sockets, and which files in their folders are removed."""

import base64
import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoon.errors import ConfigError, InvalidInputError, KubeletError
from dragoon.kubelet.sockets import (
    PATH_LIMIT,
    SocketPaths,
    is_dead,
    make_folder,
    remove_stale,
    socket_paths,
)

DRIVER = "gpu.dragoon.dev"
UID = "04f79e0a-2b1b-4f93-8f5e-7bf1823ab117"
OTHER_UID = "9c1ae7bb-0b5c-4a35-b6b8-6ff6a3b0d2c4"


@pytest.fixture
def root() -> Iterator[Path]:
    """A kubelet root with a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="dk", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def paths(root: Path) -> SocketPaths:
    found = socket_paths(root, DRIVER, UID)
    make_folder(found.registration.parent)
    make_folder(found.service.parent)
    return found


def dead_socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
    return path


@pytest.fixture
def live_socket(paths: SocketPaths) -> Iterator[Path]:
    path = paths.registration.with_name(f"{DRIVER}-{OTHER_UID}-reg.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)
        yield path


def root_of_length(length: int) -> Path:
    return Path("/" + "r" * (length - 1))


def test_names_carry_driver_and_uid_and_fit_under_the_usual_root() -> None:
    found = socket_paths(Path("/var/lib/kubelet"), DRIVER, UID)
    assert found.registration == Path(f"/var/lib/kubelet/plugins_registry/{DRIVER}-{UID}-reg.sock")
    assert found.service == Path(f"/var/lib/kubelet/plugins/{DRIVER}/dra-{UID}.sock")


def test_registration_names_get_shorter_as_the_root_gets_longer() -> None:
    short_uid = base64.urlsafe_b64encode(hashlib.sha256(UID.encode()).digest()[:8])
    shortest = base64.urlsafe_b64encode(hashlib.sha256(f"{DRIVER}\0{UID}".encode()).digest()[:16])
    names = [
        f"{DRIVER}-{UID}-reg.sock",
        f"{DRIVER}-{short_uid.decode().rstrip('=')}-reg.sock",
        f"dra-{shortest.decode().rstrip('=')}-reg.sock",
    ]
    room = PATH_LIMIT - len("/plugins_registry/")
    chosen = {
        length: socket_paths(root_of_length(length), DRIVER, UID).registration.name
        for length in (room - len(names[0]), room - len(names[0]) + 1)
    }
    assert list(chosen.values()) == names[:2]
    # With a long driver name the service's path would be too long first; a short UID leaves room.
    long_driver = "d" * 63
    found = socket_paths(Path("/k"), long_driver, "u1")
    assert found.registration.name == f"{long_driver}-u1-reg.sock"
    found = socket_paths(root_of_length(15), long_driver, "u1")
    assert found.registration.name.startswith("dra-")
    assert len(found.registration.name) == len(names[2])


def test_a_path_that_is_too_long_names_length_limit_and_setting() -> None:
    root = root_of_length(60)
    with pytest.raises(KubeletError) as caught:
        socket_paths(root, DRIVER, UID)
    service = f"{root}/plugins/{DRIVER}/dra-{UID}.sock"
    assert f"{service} has {len(service)} bytes, allowed are 107" in str(caught.value)
    assert "kubeletRoot" in caught.value.hint


def test_length_is_counted_in_bytes() -> None:
    fits = PATH_LIMIT - len(f"/plugins/{DRIVER}/dra-{UID}.sock")
    socket_paths(Path("/" + "r" * (fits - 1)), DRIVER, UID)
    with pytest.raises(KubeletError, match="108 bytes"):
        socket_paths(Path("/" + "r" * (fits - 2) + "\u00e9"), DRIVER, UID)


@pytest.mark.parametrize("uid", ["", "../x", "a/b", "a b", "x" * 64])
def test_a_uid_that_cannot_be_a_file_name_is_refused(uid: str) -> None:
    with pytest.raises(InvalidInputError, match="instance UID"):
        socket_paths(Path("/k"), DRIVER, uid)


def test_a_driver_name_over_63_characters_is_refused() -> None:
    with pytest.raises(ConfigError, match="64 characters"):
        socket_paths(Path("/k"), "d" * 64, UID)


def test_a_new_folder_is_closed_to_others_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o750
    (tmp_path / "c").mkdir()
    (tmp_path / "c").chmod(0o755)
    make_folder(tmp_path / "c")
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o755


def test_a_file_where_a_folder_belongs_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "plugins").write_text("")
    with pytest.raises(KubeletError, match=r"cannot make the folder .*/plugins/x"):
        make_folder(tmp_path / "plugins" / "x")


def test_dead_is_only_a_socket_that_refuses(root: Path) -> None:
    assert is_dead(dead_socket(root / "dead"))
    assert not is_dead(root / "missing")
    (root / "file").write_text("")
    assert not is_dead(root / "file")
    (root / "folder").mkdir()
    assert not is_dead(root / "folder")


def test_a_live_socket_is_not_dead_even_when_its_queue_is_full(live_socket: Path) -> None:
    assert not is_dead(live_socket)
    callers = [socket.socket(socket.AF_UNIX) for _ in range(8)]
    full = False
    for caller in callers:
        caller.settimeout(0)
        try:
            caller.connect(str(live_socket))
        except BlockingIOError:
            full = True
    assert full
    assert not is_dead(live_socket)
    for caller in callers:
        caller.close()


def test_point_12_dead_sockets_of_the_driver_are_removed_and_nothing_else(
    paths: SocketPaths, live_socket: Path
) -> None:
    registry, data = paths.registration.parent, paths.service.parent
    ours = [
        dead_socket(path)
        for path in (
            paths.registration,
            paths.service,
            registry / f"{DRIVER}-reg.sock",
            registry / f"{DRIVER}-b6b86ff6-0b5c-4a35-b6b8-6ff6a3b0d2c4-reg.sock",
            registry / f"{DRIVER}-Zm9vYmFyXy0-reg.sock",
            data / "dra.sock",
            data / f"dra-{OTHER_UID}.sock",
        )
    ]
    foreign = [
        dead_socket(registry / f"{DRIVER}-other-{OTHER_UID}-reg.sock"),
        dead_socket(registry / f"net.{DRIVER}-{OTHER_UID}-reg.sock"),
        dead_socket(registry / "csi.example.com-reg.sock"),
        dead_socket(data / "other.sock"),
        live_socket,
    ]
    notes = data / "dra-notes.sock"
    notes.write_text("a regular file")
    remove_stale(paths, DRIVER)
    assert [path for path in ours if path.exists()] == []
    assert [path for path in [*foreign, notes] if not path.exists()] == []


def test_a_hidden_socket_is_removed_only_when_its_server_has_had_time_to_listen(
    paths: SocketPaths,
) -> None:
    fresh = dead_socket(paths.registration.with_name(".dragoon-1"))
    old = dead_socket(paths.registration.with_name(".dragoon-2"))
    os.utime(old, (0, 0))
    remove_stale(paths, DRIVER)
    assert fresh.exists()
    assert not old.exists()
