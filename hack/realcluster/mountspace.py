"""Nodes that have their folders where every node has them: /var/lib/kubelet and /var/run/cdi.

All kubelets of a cluster share one machine, so each has a folder of its own elsewhere. A DaemonSet
says one path for all nodes. Where one is to run, kubelet and containerd of a node share a mount
namespace in which the node's folders lie at the usual paths, as on a machine of its own.
"""

import os
import subprocess
from pathlib import Path

from realcluster import packages
from realcluster.failure import ClusterError
from realcluster.layout import Layout

KUBELET_ROOT = Path("/var/lib/kubelet")
_CDI = Path("/run/cdi")

# Shared within the namespace: else kubelet refuses volumes whose mounts should be seen in containers.
_SCRIPT = """\
mount --bind "$1" /var/lib/kubelet && mount --bind "$2" /run/cdi && mount --make-rshared /
"""


def create(layout: Layout, index: int, cdi: Path) -> None:
    """Make a node's namespace, unless it is there; it lives as long as its file is mounted."""
    file = _file(layout, index)
    if file.exists() and os.path.ismount(file):
        return
    kubelet = layout.kubelet_root(index)
    for folder in (file.parent, kubelet, cdi, KUBELET_ROOT, _CDI):
        folder.mkdir(parents=True, exist_ok=True)
    file.touch()
    if not os.path.ismount(file.parent):
        _run("mount", "--bind", str(file.parent), str(file.parent))
        # The kernel keeps the file of a namespace out of mounts that would show up in it.
        _run("mount", "--make-private", str(file.parent))
    options = [f"--mount={file}", "--propagation=slave"]
    _run("unshare", *options, "sh", "-euc", _SCRIPT, "node", str(kubelet), str(cdi))


def inside(layout: Layout, index: int, command: list[str]) -> list[str]:
    """The command that runs a command in a node's namespace, as the same process."""
    return [packages.find("nsenter") or "nsenter", f"--mount={_file(layout, index)}", *command]


def _file(layout: Layout, index: int) -> Path:
    return layout.node(index) / "mounts" / "namespace"


def _run(program: str, *arguments: str) -> None:
    command = [packages.find(program) or program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
