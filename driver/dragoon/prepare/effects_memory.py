"""A disk in memory that knows what was synced, and effects on it that can be told to fail.

Ships with the package: the fault campaigns and the tests of the layers above use it. `MemoryDisk`
is the hardware, which outlives processes; one `MemoryEffects` is one process on it.
"""

import errno
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dragoon.prepare.effects import Stamp, lock_timeout, state_error


class Crash(BaseException):
    """The process died here. Nothing catches it but the test that asked for it."""


@dataclass(eq=False)
class _File:
    number: int
    mode: int
    data: bytes = b""
    durable: bytes = b""
    changed: int = 0


_Names = dict[str, _File]


@dataclass(eq=False)
class _Folder:
    mode: int
    anchored: bool
    names: _Names = field(default_factory=dict)
    durable: _Names = field(default_factory=dict)
    pending: list[dict[str, _File | None]] = field(default_factory=list)

    def change(self, change: dict[str, _File | None]) -> None:
        _apply(self.names, change)
        self.pending.append(change)


def _apply(names: _Names, change: Mapping[str, _File | None]) -> None:
    for name, file in change.items():
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file


class MemoryDisk:
    """Folders and files, each with what is there and what would survive a power cut."""

    def __init__(self, boot_id: str = "boot-1") -> None:
        self.boot_id = boot_id
        self._folders: dict[Path, _Folder] = {}
        self._clock = 0
        self._held: set[tuple[Path, str]] = set()
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        files = sum(len(folder.names) for folder in self._folders.values())
        return f"<MemoryDisk {self.boot_id} folders={len(self._folders)} files={files}>"

    def power_cut(
        self,
        boot_id: str,
        *,
        wiped: Iterable[Path] = (),
        luck: random.Random | None = None,
    ) -> None:
        """Turns the machine off and on: only what was synced is there.

        luck lets some of what was not synced survive, as on a real disk: of each folder the first
        few changes, of each file the first few bytes. wiped folders lose all (tmpfs).
        """
        self.boot_id = boot_id
        self._folders = {path: one for path, one in self._folders.items() if one.anchored}
        for folder in self._folders.values():
            kept = luck.randint(0, len(folder.pending)) if luck else 0
            for change in folder.pending[:kept]:
                _apply(folder.durable, change)
            folder.pending.clear()
            folder.names = dict(folder.durable)
            for file in folder.names.values():
                torn = file.data[: luck.randint(0, len(file.data))] if luck else b""
                file.data = file.durable or torn
                file.durable = file.data
        for path in wiped:
            self._folders.pop(path, None)

    def reboot(self, boot_id: str, *, wiped: Iterable[Path] = ()) -> None:
        """Turns the machine off in good order: everything was synced but for wiped folders."""
        self.boot_id = boot_id
        for path in wiped:
            self._folders.pop(path, None)

    def files(self) -> dict[Path, bytes]:
        """Every file and its bytes."""
        return {
            path / name: file.data
            for path, folder in self._folders.items()
            for name, file in folder.names.items()
        }

    def mode(self, path: Path) -> int:
        """The permission bits of a file or a folder."""
        folder = self.find_folder(path)
        return folder.mode if folder else self._file(path, "look at").mode

    def find_folder(self, path: Path) -> _Folder | None:
        """The folder at a path, None if there is none."""
        return self._folders.get(path)

    def add_folder(self, path: Path, mode: int) -> None:
        """Makes a folder and its parents."""
        for each in (*reversed(path.parents), path):
            outermost = each.parent == each
            self._folders.setdefault(each, _Folder(mode, anchored=outermost))

    def write(self, path: Path, data: bytes, mode: int) -> None:
        """Sets the bytes of a file; none of them is durable yet."""
        folder = self._folder(path.parent, "write", path)
        file = folder.names.get(path.name)
        if file is None:
            file = _File(self._tick(), mode)
            folder.change({path.name: file})
        file.data, file.durable = data, b""
        file.mode, file.changed = mode, self._tick()

    def sync(self, path: Path) -> None:
        """Makes the bytes of a file durable."""
        file = self._file(path, "sync")
        file.durable = file.data

    def rename(self, source: Path, target: Path) -> None:
        """Moves a file within its folder."""
        if source.parent != target.parent:
            raise state_error("rename", target, OSError(errno.EXDEV, ""))
        file = self._file(source, "rename")
        self._folders[target.parent].change({target.name: file, source.name: None})
        file.changed = self._tick()

    def sync_folder(self, path: Path) -> None:
        """Makes the names in a folder durable."""
        folder = self._folder(path, "sync", path)
        folder.durable = dict(folder.names)
        folder.pending.clear()
        for child, inner in self._folders.items():
            inner.anchored |= child.parent == path

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        folder = self.find_folder(path.parent)
        if folder is not None and path.name in folder.names:
            folder.change({path.name: None})

    @contextmanager
    def hold(self, path: Path, keys: Sequence[str], patience: float) -> Iterator[None]:
        taken: list[tuple[Path, str]] = []
        try:
            for key in keys:
                wish = (path, key)
                with self._changed:
                    if not self._changed.wait_for(self._free(wish), patience):
                        raise lock_timeout(path, key)
                    self._held.add(wish)
                taken.append(wish)
            yield
        finally:
            with self._changed:
                self._held.difference_update(taken)
                self._changed.notify_all()

    def _free(self, wish: tuple[Path, str]) -> Callable[[], bool]:
        return lambda: wish not in self._held

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _folder(self, path: Path, doing: str, target: Path) -> _Folder:
        found = self._folders.get(path)
        if found is None:
            raise state_error(doing, target, FileNotFoundError(errno.ENOENT, ""))
        return found

    def _file(self, path: Path, doing: str) -> _File:
        file = self._folder(path.parent, doing, path).names.get(path.name)
        if file is None:
            raise state_error(doing, path, FileNotFoundError(errno.ENOENT, ""))
        return file


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong in one process. Effects are counted from 0.

    crash_at: this effect and all after it do not happen; Crash is raised.
    failures: the number of an effect and the errno that it fails with.
    every: an errno with which every change fails, such as EROFS.
    """

    crash_at: int | None = None
    failures: Mapping[int, int] = field(default_factory=dict)
    every: int | None = None


class MemoryEffects:
    """One process on a MemoryDisk. `performed` lists its effects in order, as `name path`."""

    def __init__(self, disk: MemoryDisk, faults: Faults | None = None) -> None:
        self.disk = disk
        self.faults = faults or Faults()
        self.performed: list[str] = []
        self._mutex = threading.Lock()
        self._dead = False

    def __repr__(self) -> str:
        return f"<MemoryEffects {'dead' if self._dead else 'alive'} done={len(self.performed)}>"

    def kill(self) -> None:
        """Ends this process: no effect happens any more."""
        self._dead = True

    def make_folder(self, path: Path, mode: int) -> None:
        self._perform("make folder", path, lambda: self.disk.add_folder(path, mode))

    def write(self, path: Path, data: bytes, mode: int) -> None:
        torn = data[: len(data) // 2]
        self._perform(
            "write",
            path,
            lambda: self.disk.write(path, data, mode),
            when_broken=lambda: self.disk.write(path, torn, mode),
        )

    def sync(self, path: Path) -> None:
        self._perform("sync", path, lambda: self.disk.sync(path))

    def rename(self, source: Path, target: Path) -> None:
        self._perform("rename", target, lambda: self.disk.rename(source, target))

    def sync_folder(self, path: Path) -> None:
        self._perform("sync folder", path, lambda: self.disk.sync_folder(path))

    def remove(self, path: Path) -> None:
        self._perform("remove", path, lambda: self.disk.remove(path))

    def read(self, path: Path) -> bytes | None:
        folder = self._look(path.parent)
        file = folder.names.get(path.name) if folder else None
        return file.data if file else None

    def exists(self, path: Path) -> bool:
        return self._look(path) is not None or self.read(path) is not None

    def names(self, folder: Path) -> tuple[str, ...]:
        found = self._look(folder)
        return tuple(sorted(found.names)) if found else ()

    def stamps(self, folder: Path) -> tuple[Stamp, ...]:
        found = self._look(folder)
        names = sorted(found.names.items()) if found else []
        return tuple(Stamp(n, f.number, len(f.data), f.changed) for n, f in names)

    def boot_id(self) -> str:
        self._alive()
        return self.disk.boot_id

    @contextmanager
    def lock(self, path: Path, keys: Iterable[str], patience: float) -> Iterator[None]:
        self._alive()
        with self.disk.hold(path, sorted(set(keys)), patience):
            yield

    def _alive(self) -> None:
        if self._dead:
            raise Crash

    def _look(self, folder: Path) -> _Folder | None:
        self._alive()
        return self.disk.find_folder(folder)

    def _perform(
        self,
        doing: str,
        path: Path,
        effect: Callable[[], None],
        *,
        when_broken: Callable[[], None] = lambda: None,
    ) -> None:
        """Does one effect, or breaks in it as the faults say, leaving what a real one may leave."""
        with self._mutex:
            self._alive()
            number = len(self.performed)
            if number == self.faults.crash_at:
                self._dead = True
                when_broken()
                raise Crash
            self.performed.append(f"{doing} {path}")
            failure = self.faults.failures.get(number, self.faults.every)
            if failure is not None:
                when_broken()
                raise state_error(doing, path, OSError(failure, os.strerror(failure)))
            effect()
