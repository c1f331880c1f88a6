"""Layers: a folder as a tar archive whose bytes depend on nothing but what the files say."""

import contextlib
import fcntl
import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 20
_KEPT = 3


@dataclass(frozen=True)
class Layer:
    """One layer, uncompressed."""

    name: str
    path: Path
    digest: str
    """Of the uncompressed archive, as `sha256:...`; so it is the diff ID too."""
    size: int


@dataclass(frozen=True)
class Store:
    """Where layers are kept by what they are made of."""

    folder: Path
    epoch: int = 0
    """The time of every file, in seconds since 1970 (SOURCE_DATE_EPOCH)."""

    def layer(self, name: str, key: str, fill: Callable[[Path], None]) -> Layer:
        """The layer of a name and a key; `fill` puts its files into a folder if it is missing."""
        path = self.folder / f"{name}-{fingerprint(key, str(self.epoch))}.tar"
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock():
            if not path.exists():
                with self.scratch() as folder:
                    root = folder / "root"
                    root.mkdir()
                    fill(root)
                    written = folder / "layer.tar"
                    write_tar(root, written, self.epoch)
                    # In one step: a build that is killed leaves no half layer.
                    written.rename(path)
                self._forget(name)
            path.touch()
        return Layer(name, path, file_digest(path), path.stat().st_size)

    def _forget(self, name: str) -> None:
        """Remove layers that were not used for long: each change of the source makes one."""
        found = sorted(self.folder.glob(f"{name}-*.tar"), key=lambda path: path.stat().st_mtime)
        for path in found[:-_KEPT]:
            path.unlink()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the time being, on the same file system."""
        folder = Path(tempfile.mkdtemp(prefix=".build-", dir=self.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def write_tar(root: Path, target: Path, epoch: int) -> None:
    """Everything below a folder, by name, of root:root and of one time."""
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            entry = archive.gettarinfo(path, str(path.relative_to(root)))
            if entry.islnk():
                entry = _as_file(entry, path)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = epoch
            if entry.isreg():
                with path.open("rb") as content:
                    archive.addfile(entry, content)
            else:
                archive.addfile(entry)


def fingerprint(*parts: str) -> str:
    """Short hash of what decides the bytes of something."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def file_digest(path: Path) -> str:
    """The digest of a file, as OCI writes it."""
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def tree_digest(*paths: Path) -> str:
    """Hash of the names, modes and contents of files and folders of source."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                mode = file.stat().st_mode & 0o111
                digest.update(f"{file.relative_to(path.parent)}\0{mode}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _as_file(entry: tarfile.TarInfo, path: Path) -> tarfile.TarInfo:
    """A second name of a file as a file of its own: which one is the first is chance."""
    entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
    return entry
