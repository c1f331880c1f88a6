"""The real cluster of hack/cluster, two nodes, a simulated DGX H100 in each."""

import subprocess
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress

import pytest

from realcluster import bringup, teardown
from realcluster.cluster import Cluster
from realcluster.failure import ClusterError
from realcluster.layout import default_name
from realcluster.state import Settings
from testbed import version
from testbed.bed import Bed
from testbed.controller import Controller, account_kubeconfig
from testbed.controller import install as install_controller
from testbed.plugins import Plugin, install
from testbed.waiting import until
from tests.e2e.gangs import Gangs

# Two checkouts may test at once.
_CLUSTER = f"e2e-{default_name()}"
_MACHINE = "dgx-h100"
_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    teardown.down(_CLUSTER)
    bringup.up(
        _CLUSTER,
        node_count=2,
        kubernetes=version.chosen(),
        settings=Settings(),
        install=False,
    )
    yield Cluster.open(_CLUSTER)
    teardown.down(_CLUSTER)


@pytest.fixture(scope="session")
def bed(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Bed]:
    folder = tmp_path_factory.mktemp("plugins")
    install(cluster)
    plugins = {
        node.name: Plugin(cluster, node, folder, _MACHINE, "--allow-unenforced-shares", "true")
        for node in cluster.nodes
    }
    bed = Bed(cluster, plugins)
    request.config.stash[_FIGURES] = bed.figures
    try:
        for plugin in plugins.values():
            plugin.start_and_wait()
        yield bed
    finally:
        for plugin in plugins.values():
            plugin.stop()


@pytest.fixture
def namespace(bed: Bed) -> Iterator[str]:
    """A namespace of this test alone; afterwards nothing of it is left, on the nodes neither."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    bed.kubectl("create", "namespace", name)
    yield name
    bed.kubectl("delete", "namespace", name, "--wait=false")
    until(f"namespace {name} is gone", lambda: bed.get("namespace", name) is None, within=120)
    for plugin in bed.plugins.values():
        until(f"journal of {plugin.node.name} is empty", plugin.is_clean)


@pytest.fixture(scope="session")
def controller(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """The controller with the rights of its ServiceAccount, and what it needs in the cluster."""
    folder = tmp_path_factory.mktemp("controller")
    install_controller(bed.cluster)
    process = Controller(account_kubeconfig(bed.cluster, folder), folder)
    process.start_and_wait()
    yield process
    process.stop()


@pytest.fixture
def gangs(bed: Bed, controller: Controller, namespace: str) -> Iterator[Gangs]:
    """A namespace for gangs; the controller runs, and no rule is left afterwards."""
    made = Gangs(bed, controller, namespace)
    yield made
    if not controller.running:
        controller.start_and_wait()
    bed.kubectl("delete", "job,pod", "--all", "-n", namespace, "--wait=false")
    until("no rule is left", lambda: not made.rules())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the plugins and the cluster said."""
    report = yield
    bed = getattr(item, "funcargs", {}).get("bed")
    if bed is not None and report.failed:
        for plugin in bed.plugins.values():
            tail = subprocess.run(
                ["tail", "-n", "40", plugin.log], capture_output=True, check=False
            )
            report.sections.append((f"log of {plugin.node.name}", tail.stdout.decode()))
        with suppress(ClusterError):  # a teardown may fail after the cluster is gone
            events = bed.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp")
            report.sections.append(("events", "\n".join(events.splitlines()[-25:])))
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Prints what the tests measured."""
    for figure in config.stash.get(_FIGURES, []):
        terminalreporter.write_line(f"measured: {figure}")
