"""Where the files of a cluster are: short paths, because Unix sockets allow 107 bytes."""

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from realcluster.failure import ClusterError

MAX_NODES = 40

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SOCKET_LIMIT = 107
# The longest socket below a kubelet root: plugin registration with a pod UID in its name.
_REGISTRATION = "plugins_registry/gpu.dragoon.dev-" + "u" * 36 + "-reg.sock"


@dataclass(frozen=True)
class Layout:
    """The folder of one cluster; everything the cluster writes is below it."""

    folder: Path

    @property
    def state_file(self) -> Path:
        return self.folder / "state.json"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def credentials(self) -> Path:
        return self.folder / "credentials"

    @property
    def etcd_data(self) -> Path:
        return self.folder / "etcd"

    def kubelet_root(self, index: int) -> Path:
        """Directly below the folder and two letters short: sockets are deep below it."""
        return self.folder / f"k{index}"

    def node(self, index: int) -> Path:
        """Everything else of a node: containerd, CNI, CDI, pod logs."""
        return self.folder / f"node{index}"


def cluster_layout(name: str) -> Layout:
    """The layout of a cluster by its name, after checking that its sockets will fit."""
    if not _NAME.fullmatch(name):
        raise ClusterError(f"cluster name {name!r}: small letters, digits and dashes only")
    root = Path(os.environ.get("DRAGOON_CLUSTER_ROOT") or "/tmp").resolve()  # noqa: S108
    layout = Layout(root / f"dragoon-{name}")
    longest = len(os.fsencode(layout.kubelet_root(MAX_NODES) / _REGISTRATION))
    if longest > _SOCKET_LIMIT:
        raise ClusterError(
            f"{layout.folder} is {longest - _SOCKET_LIMIT} bytes too long for Unix sockets: "
            "choose a shorter --name or DRAGOON_CLUSTER_ROOT"
        )
    return layout


def default_name() -> str:
    """DRAGOON_CLUSTER_NAME, else one name per checkout, so that two checkouts never meet."""
    checkout = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(os.fsencode(checkout)).hexdigest()
    return os.environ.get("DRAGOON_CLUSTER_NAME") or digest[:6]


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold a folder against other runs; the folder itself is the lock, so nothing is left over."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Whoever held it before may have removed the folder: then it is another one by now.
            if folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat()):
                yield
                return
        finally:
            os.close(descriptor)
