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

from dragoon.api.opaque_config import TimeSlice
from dragoon.gpu.model import PciAddress
from dragoon.prepare.cards import MemoryCards
from dragoon.prepare.effects import Stamp, lock_timeout, state_error
from dragoon.prepare.mig_faults import FaultyMigCards


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
        self.cards = MemoryCards()

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
        few changes, of each file the first few bytes, and of new folders some. wiped folders lose
        all (tmpfs).
        """
        self.boot_id = boot_id
        self._folders = {
            path: one
            for path, one in self._folders.items()
            if one.anchored or (luck is not None and luck.random() < 0.5)
        }
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
        self._begin_anew(wiped)

    def reboot(self, boot_id: str, *, wiped: Iterable[Path] = ()) -> None:
        """Turns the machine off in good order: everything was synced but for wiped folders."""
        self.boot_id = boot_id
        self._begin_anew(wiped)

    def files(self) -> dict[Path, bytes]:
        """Every file and its bytes."""
        return {
            path / name: file.data
            for path, folder in self._folders.items()
            for name, file in folder.names.items()
        }

    def folders(self) -> tuple[Path, ...]:
        """Every folder, parents first."""
        return tuple(sorted(self._folders))

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
        """Moves a file. Across folders a power cut may keep both names; so may a real disk."""
        file = self._file(source, "rename")
        target_folder = self._folder(target.parent, "rename", target)
        if source.parent == target.parent:
            target_folder.change({target.name: file, source.name: None})
        else:
            target_folder.change({target.name: file})
            self._folders[source.parent].change({source.name: None})
        file.changed = self._tick()

    def set_mode(self, path: Path, mode: int) -> None:
        """Sets the permission bits of a folder or a file."""
        (self.find_folder(path) or self._file(path, "set the mode of")).mode = mode

    def patch(self, path: Path, offset: int, data: bytes) -> None:
        """Replaces bytes inside a file."""
        file = self._file(path, "patch")
        file.data = file.data[:offset] + data + file.data[offset + len(data) :]
        file.durable = b""

    def remove_tree(self, path: Path) -> None:
        """Removes a folder and all below it."""
        below = {one for one in self._folders if one == path or path in one.parents}
        self._folders = {one: kept for one, kept in self._folders.items() if one not in below}

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

    def child_folders(self, path: Path) -> tuple[str, ...]:
        """The names of the folders in a folder."""
        return tuple(one.name for one in self._folders if one.parent == path != one)

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

    def _begin_anew(self, wiped: Iterable[Path]) -> None:
        for path in wiped:
            self.remove_tree(path)
        self.cards.mig.reboot()
        self.cards = MemoryCards(mig=self.cards.mig)

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

    @property
    def mig(self) -> FaultyMigCards:
        return FaultyMigCards(self.disk.cards.mig, self._perform, self._alive)

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

    def set_mode(self, path: Path, mode: int) -> None:
        self._perform("set the mode of", path, lambda: self.disk.set_mode(path, mode))

    def patch(self, path: Path, offset: int, data: bytes) -> None:
        self._perform("patch", path, lambda: self.disk.patch(path, offset, data))

    def remove_tree(self, path: Path) -> None:
        self._perform("remove", path, lambda: self.disk.remove_tree(path))

    def set_memory_cap(self, address: PciAddress, cgroup: Path, hard: int | None) -> None:
        self._perform("cap", cgroup, lambda: self.disk.cards.set_memory_cap(address, cgroup, hard))

    def set_time_slice(self, uuid: str, interval: TimeSlice) -> None:
        self._perform(
            f"set the {interval} time slice of",
            Path(uuid),
            lambda: self.disk.cards.set_time_slice(uuid, interval),
        )

    def read(self, path: Path) -> bytes | None:
        folder = self._look(path.parent)
        file = folder.names.get(path.name) if folder else None
        return file.data if file else None

    def peek(self, path: Path, size: int) -> bytes | None:
        data = self.read(path)
        return None if data is None else data[:size]

    def mode(self, path: Path) -> int | None:
        return self.disk.mode(path) if self.exists(path) else None

    def memory_cap(self, address: PciAddress, cgroup: Path) -> int | None:
        self._alive()
        return self.disk.cards.memory_cap(address, cgroup)

    def exists(self, path: Path) -> bool:
        is_cgroup = path in self.disk.cards.cgroups
        return is_cgroup or self._look(path) is not None or self.read(path) is not None

    def names(self, folder: Path) -> tuple[str, ...]:
        found = self._look(folder)
        return tuple(sorted((*found.names, *self.disk.child_folders(folder)))) if found else ()

    def stamps(self, folder: Path) -> tuple[Stamp, ...]:
        found = self._look(folder)
        if found is None:
            return ()
        files = [Stamp(n, f.number, len(f.data), f.changed) for n, f in found.names.items()]
        return (*sorted(files, key=lambda one: one.name), *self._folder_stamps(folder))

    def boot_id(self) -> str:
        self._alive()
        return self.disk.boot_id

    @contextmanager
    def lock(self, path: Path, keys: Iterable[str], patience: float) -> Iterator[None]:
        self._alive()
        with self.disk.hold(path, sorted(set(keys)), patience):
            yield

    def _folder_stamps(self, folder: Path) -> Iterator[Stamp]:
        """A folder changes when a name in it does."""
        for name in sorted(self.disk.child_folders(folder)):
            inside = self.disk.find_folder(folder / name)
            files = inside.names.values() if inside else ()
            numbers = tuple(file.number for file in files)
            yield Stamp(name, 0, len(numbers), sum(numbers))

    def _alive(self) -> None:
        if self._dead:
            raise Crash

    def _look(self, folder: Path) -> _Folder | None:
        self._alive()
        return self.disk.find_folder(folder)

    def _perform(
        self,
        doing: str,
        path: object,
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
                raise state_error(doing, Path(str(path)), OSError(failure, os.strerror(failure)))
            effect()
