"""containerd of one node: its configuration, its network, its command."""

import json
import subprocess
import tempfile
from pathlib import Path

from realcluster import packages
from realcluster.builds import Programs
from realcluster.failure import ClusterError
from realcluster.images import PAUSE
from realcluster.layout import Layout

NAMESPACE = "k8s.io"

_CONFIG = """\
version = 4
root = '{folder}/containerd'
state = '{folder}/run'
imports = []

[plugins.'io.containerd.server.v1.grpc']
  address = '{socket}'

[plugins.'io.containerd.server.v1.ttrpc']
  address = '{socket}.ttrpc'

[plugins.'io.containerd.internal.v1.opt']
  path = '{folder}/opt'

# Shims are found, and their sockets removed, by folder.
[plugins.'io.containerd.shim.v1.manager']
  socket_dir = '{folder}/s'

# Its socket is one per machine.
[plugins.'io.containerd.nri.v1.nri']
  disable = true

[plugins.'io.containerd.metadata.v1.bolt']
  no_sync = true

[plugins.'io.containerd.cri.v1.images']
  snapshotter = '{snapshotter}'

  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{pause}'

[plugins.'io.containerd.cri.v1.runtime']
  cdi_spec_dirs = ['{folder}/cdi']
  netns_mounts_under_state_dir = true
  # Without CAP_SYS_RESOURCE a negative score cannot be set: then take the lowest possible.
  restrict_oom_score_adj = true

  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['/usr/lib/cni']
    conf_dir = '{folder}/cni'
    # The plugin for it would leave a file per pod that does not say whose it is.
    use_internal_loopback = true

  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'

    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '{runc}'
      Root = '{folder}/runc'
"""


def socket_path(layout: Layout, index: int) -> Path:
    """The socket of a node's containerd."""
    return layout.node(index) / "containerd.sock"


def cdi_folder(layout: Layout, index: int) -> Path:
    """The only folder a node's containerd reads CDI specs from."""
    return layout.node(index) / "cdi"


def runc_root(layout: Layout, index: int) -> Path:
    """Where runc keeps the state of a node's containers."""
    return layout.node(index) / "runc" / NAMESPACE


def network_prefix(cluster: str) -> str:
    """How the CNI networks of a cluster's nodes begin, and what CNI leaves in /var/lib/cni."""
    return f"dragoon-{cluster}-"


def configure(layout: Layout, index: int, *, cluster: str, subnet: str, snapshotter: str) -> None:
    """Write the files of a node's containerd."""
    folder = layout.node(index)
    for name in ("cdi", "cni", "s", "opt"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    text = _CONFIG.format(
        folder=folder,
        socket=socket_path(layout, index),
        snapshotter=snapshotter,
        pause=PAUSE,
        runc=packages.find("runc"),
    )
    (folder / "containerd.toml").write_text(text)
    network = _network(layout, index, cluster, subnet)
    (folder / "cni" / "10-ptp.conflist").write_text(json.dumps(network, indent=1))


def command(layout: Layout, index: int, programs: Programs) -> list[str]:
    """How a node's containerd is started."""
    config = layout.node(index) / "containerd.toml"
    return [programs.path("containerd"), "--config", str(config)]


def ctr(programs_ctr: str, socket: str, *arguments: str) -> str:
    """Run `ctr` against a node's containerd."""
    command = [programs_ctr, "--address", socket, "--namespace", NAMESPACE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


def choose_snapshotter(folder: Path) -> str:
    """The overlayfs one where the file system takes it, else native, which copies every image."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        layers = {name: Path(scratch) / name for name in ("lower", "upper", "work", "merged")}
        for layer in layers.values():
            layer.mkdir()
        merged = str(layers.pop("merged"))
        options = ",".join(
            f"{key}={layers[name]}"
            for key, name in (("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "work"))
        )
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, merged]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return "native"
        subprocess.run(["umount", merged], capture_output=True, check=True)
    return "overlayfs"


def _network(layout: Layout, index: int, cluster: str, subnet: str) -> dict[str, object]:
    leases = str(layout.node(index) / "leases")
    # Point to point and without masquerading: no bridge and no firewall rule to clean up, and
    # pods reach this machine, which is all they need.
    return {
        "cniVersion": "1.0.0",
        "name": f"{network_prefix(cluster)}{index}",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "dataDir": leases,
                    "ranges": [[{"subnet": subnet}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }
