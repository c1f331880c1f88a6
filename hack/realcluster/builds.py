"""Build the programs of a Go module once, and keep them outside the repository."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from realcluster import versions
from realcluster.failure import ClusterError
from realcluster.versions import Module, Version


@dataclass(frozen=True)
class Programs:
    """Folders with built programs."""

    kubernetes: Path
    etcd: Path
    containerd: Path

    def path(self, name: str) -> str:
        """The path of a program by its name."""
        for folder in (self.kubernetes, self.etcd, self.containerd):
            if (folder / name).is_file():
                return str(folder / name)
        raise ClusterError(f"no program {name!r} was built")


def cache_folder() -> Path:
    """Where built programs are kept: DRAGOON_CLUSTER_CACHE, else the user's cache folder."""
    override = os.environ.get("DRAGOON_CLUSTER_CACHE")
    if override:
        return Path(override).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dragoon" / "cluster"


def build_all(version: Version) -> Programs:
    """Everything a cluster of this version needs; quick where it was built before."""
    # The long one last, so that a broken Go setup shows within a minute.
    etcd = build(versions.etcd())
    containerd = build(versions.containerd())
    return Programs(build(versions.kubernetes(version)), etcd, containerd)


def build(module: Module) -> Path:
    """Build one module, or find it built; return the folder with its programs."""
    target = cache_folder() / f"{module.name}-{module.version}-{fingerprint(module)}"
    if target.is_dir():
        return target
    with _build_lock():
        if not target.is_dir():
            _build_into(module, target)
    return target


def fingerprint(module: Module) -> str:
    """Short hash of all that decides what is built, so that a changed go.mod builds anew."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((module.folder / name).read_bytes())
    digest.update(repr((module.renamed, module.tags, module.ldflags)).encode())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def _build_lock() -> Iterator[None]:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another build to finish ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_into(module: Module, target: Path) -> None:
    print(f"building {module.name} {module.version} from its Go module ...", flush=True)
    started = time.monotonic()
    # Beside the target, so that the rename at the end is atomic: a killed build leaves no half.
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _go_build(module, scratch)
        for name, built in module.renamed:
            (scratch / built).rename(scratch / name)
        scratch.chmod(0o755)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"built {module.name} {module.version} in {time.monotonic() - started:.0f} s", flush=True)


def _go_build(module: Module, output: Path) -> None:
    if not shutil.which("go"):
        raise ClusterError("Go is needed to build the cluster's programs, and `go` is not on PATH")
    flags = ["-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", module.ldflags]
    if module.tags:
        flags += ["-tags", module.tags]
    # Niced: it takes minutes, and people work meanwhile. No cgo: no C headers needed.
    command = ["nice", "go", "build", *flags, "-o", f"{output}/", "tool"]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(command, cwd=module.folder, env=environment, check=False)
    if done.returncode:
        raise ClusterError(f"building {module.name} {module.version} failed, see above")
