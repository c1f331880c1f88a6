"""The real cluster of hack/cluster, two nodes, a simulated DGX H100 in each."""

import signal
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress

import pytest

from dragoon.diagnose.installed import OURS, PART_OF
from realcluster.cluster import Cluster
from realcluster.failure import ClusterError
from realcluster.processes import tail
from testbed import version
from testbed.bed import Bed
from testbed.controller import Controller
from testbed.plugins import SYSTEM
from testbed.process import Process
from testbed.serving import create_namespace
from testbed.waiting import until
from tests.e2e.gangs import Gangs
from tests.e2e.standing import a_bed, a_cluster, a_controller

_FIGURES = pytest.StashKey[list[str]]()
_LINES = 40
_WHY = 'WHY:.status.conditions[?(@.type=="PodScheduled")].message'
_TOLD = "CONDITIONS:.status.conditions[*].reason,WAITS FOR:.status.waitingFor"
_PHASE = "NAME:.metadata.name,PHASE:.status.phase"
_SHOWN = {
    # Not by lastTimestamp, which kube-scheduler leaves empty.
    "events": ("get", "events", "-A", "--sort-by=.metadata.creationTimestamp"),
    "pods": ("get", "pods", "-A", "-o", f"custom-columns={_PHASE},NODE:.spec.nodeName,{_WHY}"),
    "claims": ("get", "resourceclaims", "-A"),
    "slices": ("get", "resourceslices"),
    "gangs": ("get", "gangs", "-A", "-o", f"custom-columns={_PHASE},{_TOLD}"),
    "logs of the release": (
        *("logs", "-n", SYSTEM, "-l", f"{PART_OF}={OURS}"),
        *("--all-containers", "--prefix", "--ignore-errors", "--tail=10"),
    ),
}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with a_cluster() as started:
        yield started


@pytest.fixture(scope="session")
def bed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with a_bed(cluster, tmp_path_factory.mktemp("plugins")) as made:
        yield made


@pytest.fixture(autouse=True)
def figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test measured is printed at the end."""
    yield
    bed = request.node.funcargs.get("bed")
    if bed is not None:
        request.config.stash.setdefault(_FIGURES, []).extend(bed.figures)
        bed.figures.clear()


@pytest.fixture
def namespace(bed: Bed) -> Iterator[str]:
    """A namespace of this test alone; afterwards nothing of it is left, on the nodes neither."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    create_namespace(bed.cluster, name)
    yield name
    # Waits until they are gone; a namespace that is not empty is looked at again after seconds only.
    kinds = "job,deployment,pod,resourceclaim"
    bed.kubectl("delete", kinds, "--all", "-n", name, "--grace-period=1", "--timeout=240s")
    bed.kubectl("delete", "namespace", name, "--wait=false")
    for plugin in bed.plugins.values():
        until(f"journal of {plugin.node.name} is empty", plugin.is_clean)


@pytest.fixture(scope="session")
def controller(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    if not version.at_least("1.37.0"):
        pytest.skip(f"{version.chosen()} has no gangs")
    with a_controller(bed, tmp_path_factory.mktemp("controller")) as process:
        yield process


@pytest.fixture
def gangs(bed: Bed, controller: Controller, namespace: str) -> Iterator[Gangs]:
    """A namespace for gangs; the controller runs, and no rule is left afterwards."""
    made = Gangs(bed, controller, namespace)
    yield made
    if not controller.running:
        controller.start_and_wait()
    bed.kubectl("delete", "job,pod", "--all", "-n", namespace, "--wait=false")
    until("no rule is left", lambda: not made.rules())


def pytest_sessionstart() -> None:
    """A run that is told to end, as one in the background is, takes its clusters with it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what our processes and the cluster said."""
    report = yield
    given = getattr(item, "funcargs", {})
    bed = given.get("bed")
    if bed is not None and report.failed:
        for name, process in _processes(bed, given).items():
            report.sections.append((f"log of {name}", tail(str(process.log), _LINES)))
        for what, arguments in _SHOWN.items():
            # A teardown may fail after the cluster is gone, and not every cluster has gangs.
            with suppress(ClusterError):
                if lines := bed.kubectl(*arguments).splitlines():
                    report.sections.append((what, "\n".join(lines[-_LINES:])))
    return report


def _processes(bed: Bed, given: Mapping[str, object]) -> dict[str, Process]:
    """Ours outside of pods, by name. given: the fixtures of a test."""
    found: dict[str, Process] = dict(bed.plugins)
    made = {name: one.controller for name, one in given.items() if isinstance(one, Gangs)}
    return found | {f"the controller ({name})": one for name, one in made.items()}


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Prints what the tests measured."""
    for figure in config.stash.get(_FIGURES, []):
        terminalreporter.write_line(f"measured: {figure}")
