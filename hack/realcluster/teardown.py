"""`down`: end everything of a cluster, also of one that is half started or half gone."""

import contextlib
import re
import shutil
import subprocess
from pathlib import Path

from realcluster import network, packages, processes, runtime
from realcluster.controlplane import API_SERVER, ETCD
from realcluster.failure import ClusterError
from realcluster.layout import Layout, cluster_layout, folder_lock
from realcluster.slots import Slot
from realcluster.state import State, load

# Folders outside the cluster's own in which kubelet and CNI leave something.
_CONTAINER_LOGS = Path("/var/log/containers")
_CNI_RESULTS = Path("/var/lib/cni/results")


def down(name: str) -> None:
    """Stop a cluster and remove all that is left of it."""
    packages.require_root()
    layout = cluster_layout(name)
    if not layout.folder.exists():
        return
    with folder_lock(layout.folder):
        state = _state(layout)
        names = list(state.processes) if state else []
        # etcd and the API server last, so that the others do not fill their logs meanwhile.
        last = [component for component in (API_SERVER, ETCD) if component in names]
        runtimes = [component for component in names if component.startswith("containerd-")]
        first = [component for component in names if component not in {*last, *runtimes}]
        _stop(layout, first)
        _delete_containers(layout)
        # Nothing of etcd or the API server is kept: no reason to wait for them.
        _stop(layout, [*runtimes, *last], grace=1.0)
        _end_left_over(layout)
        _unmount(layout.folder)
        _sweep(layout, name)
        if state:
            network.close_service(Slot(state.slot), state.address)
            network.release(Slot(state.slot))
        shutil.rmtree(layout.folder)


def mounts_below(folder: Path, mountinfo: str) -> list[str]:
    """Mount points below a folder in the text of /proc/self/mountinfo, latest first."""
    points = [_unescape(line.split()[4]) for line in mountinfo.splitlines() if line]
    below = [point for point in points if point.startswith(f"{folder}/")]
    return below[::-1]


def _state(layout: Layout) -> State | None:
    try:
        return load(layout.state_file)
    except (ClusterError, ValueError, TypeError, KeyError):
        # Never planned, or written by another version: the folder and the marks still tell much.
        return None


def _stop(layout: Layout, components: list[str], *, grace: float = 10.0) -> None:
    for component in components:
        processes.stop(layout.state_file, component, grace=grace)


def _delete_containers(layout: Layout) -> None:
    """Through runc and not containerd, which may be dead or never have started."""
    runc = packages.find("runc")
    for root in sorted(layout.folder.glob(f"node*/runc/{runtime.NAMESPACE}")):
        for container in sorted(entry.name for entry in root.iterdir()):
            # A container that ended meanwhile is an error to runc and what we want.
            command = [str(runc), "--root", str(root), "delete", "--force", container]
            subprocess.run(command, capture_output=True, check=False)


def _end_left_over(layout: Layout) -> None:
    """Shims of this cluster's containerd, and what a run that was killed did not write down."""
    for pid, started in processes.left_over(layout.folder):
        processes.terminate(pid, started, grace=0.1)


def _unmount(folder: Path) -> None:
    for point in mounts_below(folder, Path("/proc/self/mountinfo").read_text()):
        for options in ([], ["--lazy"]):
            command = ["umount", *options, point]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                break
    left = mounts_below(folder, Path("/proc/self/mountinfo").read_text())
    if left:
        # Removing the folder now would remove files of whatever is mounted there.
        raise ClusterError(f"cannot unmount {', '.join(left)}; unmount by hand and try again")


def _sweep(layout: Layout, name: str) -> None:
    """Remove this cluster's entries from the folders it shares with others."""
    result = re.compile(rf"{re.escape(runtime.network_prefix(name))}\d+-[0-9a-f]{{64}}-.*")
    for entry in _entries(_CNI_RESULTS):
        if result.fullmatch(entry.name):
            entry.unlink(missing_ok=True)
    for entry in _entries(_CONTAINER_LOGS):
        if entry.is_symlink() and entry.readlink().is_relative_to(layout.folder):
            entry.unlink(missing_ok=True)


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return list(folder.iterdir())
    return []


def _unescape(text: str) -> str:
    """Undo the octal escapes of /proc/self/mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)
