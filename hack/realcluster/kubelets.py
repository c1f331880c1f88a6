"""kubelet of one node: its configuration and its command."""

import json
from pathlib import Path
from typing import Any

from realcluster import runtime
from realcluster.builds import Programs
from realcluster.credentials import Credentials, node_user
from realcluster.layout import Layout
from realcluster.slots import Slot
from realcluster.state import Settings


def configure(
    layout: Layout,
    slot: Slot,
    index: int,
    *,
    name: str,
    address: str,
    api_url: str,
    settings: Settings,
) -> None:
    """Write the files of a node's kubelet."""
    folder = layout.node(index)
    (folder / "manifests").mkdir(parents=True, exist_ok=True)
    credentials = Credentials(layout.credentials)
    credentials.kubeconfig(node_user(name), api_url, kubeconfig(layout, index))
    config = _config(layout, slot, index, address, credentials.ca)
    if settings.feature_gates:
        pairs = (pair.partition("=") for pair in settings.feature_gates.split(","))
        config["featureGates"] = {gate: value.lower() == "true" for gate, _, value in pairs}
    (folder / "kubelet.json").write_text(json.dumps(config, indent=1))


def kubeconfig(layout: Layout, index: int) -> Path:
    """The kubeconfig of a node's kubelet."""
    return layout.node(index) / "kubelet.kubeconfig"


def command(
    layout: Layout, index: int, programs: Programs, *, name: str, address: str, root: Path
) -> list[str]:
    """How a node's kubelet is started; `root` is its root folder, as it sees it."""
    return [
        programs.path("kubelet"),
        f"--config={layout.node(index) / 'kubelet.json'}",
        f"--kubeconfig={kubeconfig(layout, index)}",
        f"--root-dir={root}",
        f"--cert-dir={layout.node(index) / 'pki'}",
        f"--hostname-override={name}",
        # A loopback address is refused, and without an address logs and exec fail.
        f"--node-ip={address}",
        "--v=2",
    ]


def _config(
    layout: Layout, slot: Slot, index: int, address: str, authority: Path
) -> dict[str, Any]:
    folder = layout.node(index)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "port": slot.kubelet_port(index),
        "readOnlyPort": 0,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": slot.kubelet_health_port(index),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{runtime.socket_path(layout, index)}",
        "podLogsDir": str(folder / "pod-logs"),
        "staticPodPath": str(folder / "manifests"),
        "volumePluginDir": str(folder / "volume-plugins"),
        # The machine is not the kubelet's own: leave its cgroups, its swap, its firewall and its
        # disk to whom they belong.
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "localStorageCapacityIsolation": False,
        "oomScoreAdj": 0,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
    }
