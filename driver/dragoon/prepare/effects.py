"""The one side-effect port of prepare, and its real implementation.

Each method that changes something is one effect: a point between two of them is a point at which
the process may die, and each may fail by itself. Whatever prepare does to a node goes through here.
All of it blocks: it is called off the event loop.
"""

import errno
import fcntl
import hashlib
import os
import stat
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from dragoon.api.opaque_config import TimeSlice
from dragoon.errors import StateError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.port import MigCards
from dragoon.prepare.cards import UNCHANGEABLE_CARDS, Cards
from dragoon.prepare.descriptors import Opened, all_of, opened_regular, remove_tree

_RETRYABLE = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EINTR})
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_DAMAGED = frozenset({errno.EIO, errno.EBADMSG, errno.EUCLEAN})
_HINTS = {
    errno.ENOSPC: "free space on the file system of this folder",
    errno.EDQUOT: "raise the quota of this folder",
    errno.EROFS: "mount this folder read-write",
    errno.EACCES: "run the plugin as root, or give it this folder",
    errno.EPERM: "run the plugin as root, or give it this folder",
    **dict.fromkeys(_DAMAGED, "check the disk"),
    errno.EINVAL: "this file system cannot do that: keep the plugin's state on a local disk",
    errno.EOPNOTSUPP: "this file system cannot do that: keep the plugin's state on a local disk",
}
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a file is still the same, without reading it."""

    name: str
    inode: int
    size: int
    changed_ns: int


class Effects(Protocol):
    """Files, cards, boot and locks of one node.

    Failures are StateErrors, or HardwareErrors where a card is asked, retryable where they may
    pass.

    Nothing is durable before it was synced: bytes with `sync`, names (by `write`, `rename`,
    `remove`, `make_folder`) with `sync_folder` of the folder that holds them.
    """

    @property
    def mig(self) -> MigCards:
        """How cards are divided. Changing the mode, making and removing an instance are effects."""
        ...

    def make_folder(self, path: Path, mode: int) -> None:
        """Makes a folder and its parents; one that is there keeps its mode."""
        ...

    def write(self, path: Path, data: bytes, mode: int) -> None:
        """Writes a file from its beginning; never through a symbolic link."""
        ...

    def sync(self, path: Path) -> None:
        """Makes the bytes of a file durable."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Moves a file within its file system, replacing the target in one step."""
        ...

    def set_mode(self, path: Path, mode: int) -> None:
        """Sets the permission bits of a folder, whatever the umask said when it was made."""
        ...

    def patch(self, path: Path, offset: int, data: bytes) -> None:
        """Replaces bytes inside a file that a container can write too.

        A file in such a folder may be anything: only a regular one is opened, nothing is followed.
        """
        ...

    def remove_tree(self, path: Path) -> None:
        """Removes a folder with all that a container put there; one that is gone is a success."""
        ...

    def set_memory_cap(self, address: PciAddress, cgroup: Path, hard: int | None) -> None:
        """Caps the GPU memory of a cgroup on one card, in bytes, and reads it back; None: no cap.

        Raises HardwareError, also where this driver has no such caps.
        """
        ...

    def set_time_slice(self, uuid: str, interval: TimeSlice) -> None:
        """Sets how a GPU turns between its processes. Raises HardwareError."""
        ...

    def sync_folder(self, path: Path) -> None:
        """Makes the names in a folder durable."""
        ...

    def remove(self, path: Path) -> None:
        """Removes a file; one that is not there is a success."""
        ...

    def read(self, path: Path) -> bytes | None:
        """The bytes of a file, None if it is not there."""
        ...

    def peek(self, path: Path, size: int) -> bytes | None:
        """The first bytes of a file that a container can write, None unless it is a regular file.

        Never blocks, and follows nothing; see `patch`.
        """
        ...

    def mode(self, path: Path) -> int | None:
        """The permission bits of a folder or file, None if it is not there."""
        ...

    def memory_cap(self, address: PciAddress, cgroup: Path) -> int | None:
        """The cap of a cgroup on one card in bytes, None without one. Raises HardwareError."""
        ...

    def exists(self, path: Path) -> bool:
        """Whether there is a file, a folder or a device file of that name."""
        ...

    def names(self, folder: Path) -> tuple[str, ...]:
        """The names in a folder in order; nothing if there is no folder."""
        ...

    def stamps(self, folder: Path) -> tuple[Stamp, ...]:
        """A stamp of each file in a folder, by name; nothing if there is no folder."""
        ...

    def boot_id(self) -> str:
        """What changes at every boot (random(4), /proc/sys/kernel/random/boot_id)."""
        ...

    def lock(
        self, path: Path, keys: Iterable[str], patience: float
    ) -> AbstractContextManager[None]:
        """Holds all keys against other threads and other processes that use the same lock file.

        Keys are taken in order of their text, so that no two holders block each other. Raises a
        retryable StateError after `patience` seconds. Ends with the process.
        """
        ...


def state_error(doing: str, path: Path, error: OSError) -> StateError:
    """The StateError for a failed effect: what, where, why, and whether it may pass by itself."""
    return StateError(
        f"cannot {doing} {path}: {os.strerror(error.errno) if error.errno else error}",
        hint=_HINTS.get(error.errno or 0),
        retryable=error.errno in _RETRYABLE,
    )


def is_damage(error: StateError) -> bool:
    """Whether an effect failed because the disk is damaged where the file is."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _DAMAGED


class _Reported:
    """Turns an OSError of its block into a StateError.

    A class: `contextmanager` takes four times as long.
    """

    __slots__ = ("_doing", "_path")

    def __init__(self, doing: str, path: Path) -> None:
        self._doing = doing
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise state_error(self._doing, self._path, error) from error


class HostEffects:
    """The effects on a real node. cards: what is done to GPUs, where they can be changed at all."""

    def __init__(self, proc_root: Path = Path("/proc"), cards: Cards = UNCHANGEABLE_CARDS) -> None:
        self._boot_file = proc_root / "sys/kernel/random/boot_id"
        self._boot_id = ""
        self._cards = cards

    @property
    def mig(self) -> MigCards:
        return self._cards.mig

    def make_folder(self, path: Path, mode: int) -> None:
        with _Reported("make folder", path):
            path.mkdir(mode=mode, parents=True, exist_ok=True)

    def write(self, path: Path, data: bytes, mode: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with _Reported("write", path), Opened(path, flags, mode) as descriptor:
            os.fchmod(descriptor, mode)  # the umask must not decide who reads this
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]

    def sync(self, path: Path) -> None:
        self._fsync(path, os.O_RDONLY)

    def rename(self, source: Path, target: Path) -> None:
        with _Reported(f"rename {source.name} to", target):
            os.rename(source, target)  # noqa: PTH104 - Path.rename parses the target anew

    def set_mode(self, path: Path, mode: int) -> None:
        with _Reported("set the mode of", path):
            path.chmod(mode)

    def patch(self, path: Path, offset: int, data: bytes) -> None:
        with _Reported("patch", path), opened_regular(path, os.O_WRONLY) as descriptor:
            if descriptor is None:
                raise StateError(
                    f"cannot patch {path}: it is not a regular file any more",
                    hint="a container replaced it: delete its pod",
                )
            os.pwrite(descriptor, data, offset)

    def remove_tree(self, path: Path) -> None:
        with _Reported("remove", path), suppress(FileNotFoundError):
            remove_tree(path)

    def set_memory_cap(self, address: PciAddress, cgroup: Path, hard: int | None) -> None:
        self._cards.set_memory_cap(address, cgroup, hard)

    def set_time_slice(self, uuid: str, interval: TimeSlice) -> None:
        self._cards.set_time_slice(uuid, interval)

    def sync_folder(self, path: Path) -> None:
        self._fsync(path, os.O_RDONLY | os.O_DIRECTORY)

    def remove(self, path: Path) -> None:
        with _Reported("remove", path):
            path.unlink(missing_ok=True)

    def read(self, path: Path) -> bytes | None:
        with _Reported("read", path):
            try:
                with Opened(path, os.O_RDONLY) as descriptor:
                    return all_of(descriptor)
            except FileNotFoundError:
                return None

    def peek(self, path: Path, size: int) -> bytes | None:
        with _Reported("read", path), opened_regular(path, os.O_RDONLY) as descriptor:
            return None if descriptor is None else os.pread(descriptor, size, 0)

    def mode(self, path: Path) -> int | None:
        with _Reported("look at", path), suppress(FileNotFoundError):
            return stat.S_IMODE(path.lstat().st_mode)
        return None

    def memory_cap(self, address: PciAddress, cgroup: Path) -> int | None:
        return self._cards.memory_cap(address, cgroup)

    def exists(self, path: Path) -> bool:
        with _Reported("look at", path):
            try:
                os.stat(path)  # noqa: PTH116 - Path.exists takes twice as long
            except OSError as error:
                if error.errno in _ABSENT:
                    return False
                raise
            return True

    def names(self, folder: Path) -> tuple[str, ...]:
        with _Reported("list", folder):
            try:
                return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - no path for each name
            except FileNotFoundError:
                return ()

    def stamps(self, folder: Path) -> tuple[Stamp, ...]:
        found = []
        with _Reported("look at", folder), suppress(FileNotFoundError), os.scandir(folder) as seen:
            for one in seen:
                with suppress(FileNotFoundError):
                    seen_as = one.stat(follow_symlinks=False)
                    found.append((one.name, seen_as.st_ino, seen_as.st_size, seen_as.st_ctime_ns))
        return tuple(Stamp(*one) for one in sorted(found))

    def boot_id(self) -> str:
        if not self._boot_id:  # no process lives longer than one boot
            with _Reported("read", self._boot_file):
                self._boot_id = self._boot_file.read_text(encoding="ascii").strip()
        return self._boot_id

    def lock(
        self, path: Path, keys: Iterable[str], patience: float
    ) -> AbstractContextManager[None]:
        return _Locked(path, sorted(set(keys)), patience)

    def _fsync(self, path: Path, flags: int) -> None:
        with _Reported("sync", path), Opened(path, flags) as descriptor:
            os.fsync(descriptor)


class _Locked(AbstractContextManager[None]):
    """One byte of the lock file stands for one key (fcntl(2), open file description locks).

    Such a lock belongs to the open file, not to the process: it keeps out other threads too, and
    the kernel drops it when the process dies.
    """

    __slots__ = ("_descriptor", "_keys", "_path", "_patience")

    def __init__(self, path: Path, keys: Sequence[str], patience: float) -> None:
        self._path = path
        self._keys = keys
        self._patience = patience

    def __enter__(self) -> None:
        until = time.monotonic() + self._patience
        with _Reported("lock", self._path):
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            for key in self._keys:
                _lock_byte(self._descriptor, self._path, key, until)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


@lru_cache(maxsize=1024)
def _wish(key: str) -> bytes:
    """The struct flock for the byte of a key."""
    offset = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 2
    return struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)


def _lock_byte(descriptor: int, path: Path, key: str, until: float) -> None:
    wish = _wish(key)
    pause = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wish)
        except OSError as error:
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                raise state_error("lock", path, error) from error
        else:
            return
        if time.monotonic() >= until:
            raise lock_timeout(path, key)
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def lock_timeout(path: Path, key: str) -> StateError:
    """Another plugin instance, or a stuck effect of this one, holds a key for too long."""
    return StateError(
        f"cannot lock {key} in {path}: another plugin process or call still works on it",
        hint="look for a second plugin process on this node that does not end",
        retryable=True,
    )
