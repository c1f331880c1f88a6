"""What the chart will install, and the plugin process of a node."""

from pathlib import Path

import yaml

from dragoon.api.names import DRIVER_NAME
from dragoon.app import permissions
from dragoon.gpu.sim.hardware import Hardware
from realcluster.cluster import Cluster
from realcluster.state import Node
from testbed.process import Process

SYSTEM = "dragoon-system"
_ACCOUNT = "dragoon-plugin"
_CLASSES = Path(__file__).resolve().parents[2] / "deviceclasses"


def install(cluster: Cluster, driver: str = DRIVER_NAME, user: str = _ACCOUNT) -> None:
    """Namespace, ServiceAccount, RBAC as the code declares it, DeviceClasses."""
    objects: list[object] = [
        *account(user),
        *permissions.objects(driver, service_account=user, namespace=SYSTEM),
    ]
    objects += [yaml.safe_load(path.read_text()) for path in sorted(_CLASSES.glob("*.yaml"))]
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))


def account(name: str) -> list[object]:
    """A ServiceAccount, and the namespace of the system for it."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": SYSTEM},
        },
    ]


class Plugin(Process):
    """The plugin process of one node. source: the `driver` folder of another checkout."""

    def __init__(
        self,
        cluster: Cluster,
        node: Node,
        folder: Path,
        machine: str,
        *options: str,
        source: Path | None = None,
    ) -> None:
        self._made_of = (cluster, node, folder, machine)
        self.node = node
        self.state_folder = Path(node.kubelet_root, "plugins", DRIVER_NAME)
        self._gpus = folder / f"{node.name}.gpus.json"
        kubeconfig = cluster.account_kubeconfig(
            _ACCOUNT, folder / f"{node.name}.kubeconfig", namespace=SYSTEM, node=node.name
        )
        super().__init__(
            folder / f"plugin-{node.name}.log",
            "plugin",
            *("--node-name", node.name),
            *("--kubeconfig", str(kubeconfig)),
            *("--kubelet-root", node.kubelet_root),
            *("--cdi-root", node.cdi_folder),
            *("--simulate", machine),
            *("--simulate-state", str(self._gpus)),
            *options,
            environment=cluster.mark | ({"PYTHONPATH": str(source)} if source else {}),
        )

    def of_source(self, folder: Path) -> "Plugin":
        """Another plugin process as with_options(), from another checkout's `driver` folder."""
        return Plugin(*self._made_of, source=folder)

    def with_options(self, *options: str) -> "Plugin":
        """Another plugin process for the same node and the same GPUs, not started."""
        return Plugin(*self._made_of, *options)

    @property
    def hardware(self) -> Hardware:
        """The simulated GPUs of the node, once the plugin has started."""
        return Hardware(self._gpus)

    def journal(self) -> list[str]:
        """Names of the journal entries on this node."""
        return sorted(path.name for path in (self.state_folder / "journal").glob("*.json"))

    def is_clean(self) -> bool:
        """No claim is prepared here and none is half prepared."""
        return not self.journal() and not self.cdi_files()

    def cdi_files(self) -> list[Path]:
        return sorted(Path(self.node.cdi_folder).glob("*.json"))
