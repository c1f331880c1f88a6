"""What the end-to-end tests stand on: a cluster, a plugin on each node, a controller."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from realcluster import bringup, teardown
from realcluster.cluster import Cluster
from realcluster.layout import default_name
from realcluster.state import Settings
from testbed import version
from testbed.bed import Bed
from testbed.controller import Controller, account_kubeconfig
from testbed.controller import install as install_controller
from testbed.plugins import Plugin, install
from testbed.waiting import until

_MACHINE = "dgx-h100"
_SAMPLES = Path(__file__).resolve().parents[2] / "deviceclasses/samples"


@contextmanager
def a_cluster(
    kind: str = "e2e", *, node_count: int = 2, settings: Settings | None = None
) -> Iterator[Cluster]:
    """A cluster, gone afterwards. kind: three letters, there is no room for more in sockets."""
    # Two checkouts may test at once.
    name = f"{kind}-{default_name()}"
    teardown.down(name)
    bringup.up(
        name,
        node_count=node_count,
        kubernetes=version.chosen(),
        settings=settings or Settings(),
        install=False,
    )
    try:
        yield Cluster.open(name)
    finally:
        teardown.down(name)


@contextmanager
def a_bed(cluster: Cluster, folder: Path) -> Iterator[Bed]:
    """The cluster with a simulated DGX H100 in each node."""
    install(cluster)
    plugins = {
        node.name: Plugin(cluster, node, folder, _MACHINE, "--allow-unenforced-shares", "true")
        for node in cluster.nodes
    }
    try:
        for plugin in plugins.values():
            plugin.start_and_wait()
        yield Bed(cluster, plugins)
    finally:
        for plugin in plugins.values():
            plugin.stop()


@contextmanager
def a_controller(bed: Bed, folder: Path, *options: str) -> Iterator[Controller]:
    """The controller with the rights of its ServiceAccount, and what it needs in the cluster."""
    install_controller(bed.cluster)
    kubeconfig = account_kubeconfig(bed.cluster, folder)
    process = Controller(kubeconfig, folder, *options, environment=bed.cluster.mark)
    process.start_and_wait()
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def all_forms(bed: Bed) -> Iterator[str]:
    """A node that publishes all forms, and the classes for them.

    Afterwards the other forms stay for minutes, tainted, until nobody can be choosing them any more.
    """
    for sample in ("sim-mig.yaml", "sim-shared.yaml"):
        bed.kubectl("apply", "-f", str(_SAMPLES / sample))
    node = min(bed.plugins)

    def published() -> bool:
        devices = [one for piece in bed.slices(node) for one in piece["spec"].get("devices") or ()]
        return {one["attributes"]["type"]["string"] for one in devices} >= {"gpu", "mig", "shared"}

    bed.kubectl("label", "node", node, "dragoon.dev/forms=whole_shared_mig")
    until("all forms are published", published)
    yield node
    bed.kubectl("label", "node", node, "dragoon.dev/forms-")
