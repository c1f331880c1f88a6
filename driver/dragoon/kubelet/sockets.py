"""Where our Unix sockets are, and which files in their folders may be removed.

Every name carries the UID of the instance (its pod's, or a random one), never the driver alone:
two instances run side by side during an update, and gRPC would let the newer one take over the
older one's path without any error.
"""

import base64
import hashlib
import re
import socket
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from dragoon.api.names import check_driver_name, check_uid
from dragoon.errors import KubeletError

_log = structlog.get_logger(__name__)

PATH_LIMIT: Final = 107
"""Bytes of a Unix socket's path: sun_path has 108 with the final zero (unix(7))."""

HIDDEN_PREFIX: Final = ".dragoon-"
"""Begins the names of sockets that are not served yet; the kubelet ignores names with a dot."""

_FOLDER_MODE = 0o750
_HIDDEN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class SocketPaths:
    """The two sockets of one instance: the kubelet finds the first, which names the second."""

    registration: Path
    service: Path


@dataclass(frozen=True, slots=True)
class Inode:
    """Which file is at a path, whatever its name."""

    device: int
    number: int

    @staticmethod
    def of(path: Path) -> "Inode | None":
        """The file at the path itself, None where there is none that can be seen."""
        try:
            found = path.lstat()
        except OSError:
            return None
        return Inode(found.st_dev, found.st_ino)


def socket_paths(kubelet_root: Path, driver: str, instance_uid: str) -> SocketPaths:
    """The paths of an instance, with the first registration name that is short enough.

    Raises InvalidInputError for a driver or UID that cannot be part of a file name, KubeletError
    when even the shortest name makes a path longer than PATH_LIMIT.
    """
    check_driver_name(driver)
    check_uid(instance_uid, field="instance UID")
    folder = kubelet_root / "plugins_registry"
    candidates = [folder / name for name in _registration_names(driver, instance_uid)]
    fitting = [path for path in candidates if _length(path) <= PATH_LIMIT]
    service = kubelet_root / "plugins" / driver / f"dra-{instance_uid}.sock"
    for path in (service, fitting[0] if fitting else candidates[-1]):
        if _length(path) > PATH_LIMIT:
            raise KubeletError(
                f"socket path {path} has {_length(path)} bytes, allowed are {PATH_LIMIT}",
                hint="set kubeletRoot to a shorter path",
            )
    return SocketPaths(registration=fitting[0], service=service)


def make_folder(folder: Path) -> None:
    """Makes a folder for sockets if it is missing; leaves the mode of an existing one alone."""
    try:
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise KubeletError(
            f"cannot make the folder {folder}: {error.strerror}",
            hint="check kubeletRoot and the permissions below it",
        ) from error


def is_dead(path: Path) -> bool:
    """Whether there is a socket at the path that refuses connections: its server has gone.

    A full queue or a missing permission says nothing about the server.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        try:
            is_socket = stat.S_ISSOCK(path.lstat().st_mode)
            probe.connect(str(path))
        except ConnectionRefusedError:
            return is_socket
        except OSError:
            return False
    return False


def remove_stale(paths: SocketPaths, driver: str) -> None:
    """Removes the driver's sockets behind which nobody is left: the kubelet dials them for ever.

    Registration names of the third form do not tell their driver, so only our own is recognised.
    A hidden socket is left alone for a minute: its server may be about to listen.
    """
    for path in _ours(paths, driver):
        if is_dead(path):
            path.unlink(missing_ok=True)
            _log.info("removed the socket of a dead instance", path=str(path))


def _ours(paths: SocketPaths, driver: str) -> Iterator[Path]:
    uid = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    registration = re.compile(rf"{re.escape(driver)}(-({uid}|[0-9A-Za-z_-]{{11}}))?-reg\.sock")
    service = re.compile(r"dra(-[0-9A-Za-z-]+)?\.sock")
    for folder, name in (
        (paths.registration.parent, registration),
        (paths.service.parent, service),
    ):
        for path in _entries(folder):
            if name.fullmatch(path.name) or path == paths.registration or _is_old_hidden(path):
                yield path


def _is_old_hidden(path: Path) -> bool:
    if not path.name.startswith(HIDDEN_PREFIX):
        return False
    try:
        return time.time() - path.lstat().st_mtime > _HIDDEN_SECONDS
    except FileNotFoundError:
        return False


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise KubeletError(f"cannot read the folder {folder}: {error.strerror}") from error


def _registration_names(driver: str, uid: str) -> Iterator[str]:
    yield f"{driver}-{uid}-reg.sock"
    yield f"{driver}-{_short_hash(uid.encode(), 8)}-reg.sock"
    yield f"dra-{_short_hash(driver.encode() + bytes(1) + uid.encode(), 16)}-reg.sock"


def _short_hash(text: bytes, size: int) -> str:
    digest = hashlib.sha256(text).digest()[:size]
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _length(path: Path) -> int:
    return len(str(path).encode())
