"""The real Kueue: quota is counted by it, and whether the pods can be placed is asked of us.

Two nodes with eight GPUs each, four of each in use: eight are free, and no node has eight. The
objects are those of docs/kueue.md.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoon.api import gang, names
from dragoon.gang.kueue.apis import KNOWN, Apis
from dragoon.gang.kueue.model import State
from realcluster import kueue
from realcluster.cluster import Cluster
from testbed.bed import Bed, is_running
from testbed.controller import Controller
from testbed.manifests import tried
from testbed.objects import claim_spec, container, pod, template
from testbed.waiting import NotInTimeError, settles, until
from tests.docs import objects
from tests.docs.blocks import ROOT, blocks_of
from tests.e2e.gangs import Gangs, devices, exclusive, is_allocated
from tests.e2e.kueue_writer import Writer
from tests.e2e.standing import a_bed, a_cluster, a_controller

pytestmark = [pytest.mark.e2e, pytest.mark.alone, pytest.mark.timeout(900)]

Object = dict[str, Any]

_API = "kueue.x-k8s.io/v1beta2"
_GPUS = "dragoon.dev/gpus"
_QUEUE = "kueue.x-k8s.io/queue-name"
_PRIORITY = "kueue.x-k8s.io/priority-class"
_CLUSTER_WIDE = frozenset(("AdmissionCheck", "ResourceFlavor", "ClusterQueue"))
(_PAGE,) = (
    objects.documents(block)
    for block in blocks_of(ROOT / "docs/kueue.md")
    if block.kind == ("yaml", "shape")
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with a_cluster("kue") as started:
        kueue.install(
            started,
            feature_gates="DynamicResourceAllocation=true",
            device_classes=[(_GPUS, [names.CLASS_SIMULATED])],
        )
        yield started


@pytest.fixture(scope="module")
def bed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with a_bed(cluster, tmp_path_factory.mktemp("plugins")) as made:
        yield made


@pytest.fixture(scope="module")
def controller(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("controller")
    with a_controller(bed, folder, "--kueue-reject-seconds", "0") as process:
        bed.apply(
            *(one for one in _PAGE if one["kind"] in _CLUSTER_WIDE),
            _cluster_queue("unchecked", 8),
            _cluster_queue("wide", 16, check="placeable"),
        )
        yield process


@dataclass
class Queues:
    """The queues of one namespace. gangs: what else is in it."""

    bed: Bed
    gangs: Gangs

    @property
    def namespace(self) -> str:
        return self.gangs.namespace

    def job(
        self, name: str, *, gpus: int, pods: int = 1, queue: str = "team", priority: str = ""
    ) -> None:
        """A Job of so many pods with so many GPUs each; 0: without claims."""
        claims = [f"{name}-gpus"] if gpus else []
        if gpus:
            self.bed.apply(template(f"{name}-gpus", self.namespace, claim_spec(gpus)))
        made = pod(
            name, self.namespace, container("main", *claims), templates={one: one for one in claims}
        )
        self.bed.apply(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "labels": {_QUEUE: queue, **({_PRIORITY: priority} if priority else {})},
                },
                "spec": {
                    "suspend": True,
                    "parallelism": pods,
                    "completions": pods,
                    "completionMode": "Indexed",
                    "template": {"spec": {**made["spec"], "restartPolicy": "Never"}},
                },
            }
        )

    def workload(self, job: str) -> Object | None:
        found = self.bed.items("workloads.kueue.x-k8s.io", "-n", self.namespace)
        return next(
            (
                one
                for one in found
                if any(owner["name"] == job for owner in one["metadata"]["ownerReferences"])
            ),
            None,
        )

    def until(self, what: str, job: str, holds: Callable[[Object], Any]) -> Object:
        """The Workload of a job, once something holds of it."""

        def look() -> Object | None:
            found = self.workload(job)
            return found if found is not None and holds(found) else None

        try:
            return until(f"workload of {job}: {what}", look)
        except NotInTimeError as error:
            raise AssertionError(
                f"{error}; status {(self.workload(job) or {}).get('status')}"
            ) from error

    def pods(self, job: str) -> list[Object]:
        selector = f"batch.kubernetes.io/job-name={job}"
        return self.bed.items("pods", "-n", self.namespace, "-l", selector)

    def running(self, job: str, size: int = 1) -> list[Object]:
        def look() -> list[Object] | None:
            found = self.pods(job)
            return found if len(found) == size and all(map(is_running, found)) else None

        return until(f"{size} pods of {job} run", look)

    def claims(self, job: str) -> list[Object]:
        names_ = {
            one["resourceClaimName"]
            for made in self.pods(job)
            for one in (made.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        every = self.bed.items("resourceclaims", "-n", self.namespace)
        return [one for one in every if one["metadata"]["name"] in names_]

    def events(self, reason: str) -> list[str]:
        """The messages of the events with this reason."""
        found = self.bed.items(
            "events", "-n", self.namespace, "--field-selector", f"reason={reason}"
        )
        return [one["message"] for one in found]

    def half_full(self) -> None:
        """Four GPUs of each node are in use."""
        for node in self.gangs.nodes:
            self.gangs.holder(f"holder-{node}", node, 4)

    def let_go(self, node: str) -> None:
        self.bed.kubectl("delete", "pod", "-n", self.namespace, f"holder-{node}", "--wait=false")


@pytest.fixture
def queues(gangs: Gangs) -> Iterator[Queues]:
    made = Queues(gangs.bed, gangs)
    local = [one for one in _PAGE if one["kind"] not in _CLUSTER_WIDE | {"Job"}]
    more = (_local(name, made.namespace) for name in ("unchecked", "wide"))
    made.bed.apply(*tried(local, made.namespace), *more)
    yield made
    made.bed.kubectl("delete", "jobs", "--all", "-n", made.namespace, "--cascade=foreground")


def test_without_the_check_a_job_is_admitted_that_no_node_has_room_for(queues: Queues) -> None:
    queues.half_full()
    queues.job("hangs", gpus=8, queue="unchecked")
    queues.until("admitted", "hangs", _is("Admitted"))
    until("its pod finds no node", lambda: _unschedulable(queues.pods("hangs")))
    assert not any(map(is_allocated, queues.claims("hangs")))


def test_with_the_check_it_stays_in_the_queue_with_our_reason_and_runs_when_room_appears(
    queues: Queues,
) -> None:
    queues.half_full()
    (job,) = tried([one for one in _PAGE if one["kind"] == "Job"], queues.namespace)
    queues.bed.apply(job)
    waiting = queues.until("told why", "train", lambda one: "0 of 1 members fit" in _message(one))
    assert "needs 8 devices, 8 are there before 'not in use' and 4 after" in _message(waiting)
    # Also after Kueue has taken the quota back and given it again, more than once.
    queues.until("tried again", "train", lambda one: _check(one).get("retryCount", 0) >= 2)
    told = queues.until("told again", "train", lambda one: "0 of 1 members fit" in _message(one))
    assert not _is("Admitted")(told)
    assert not queues.pods("train")
    until("an event says so", lambda: queues.events("NotPlaceableRetry"))

    queues.let_go(queues.gangs.nodes[0])
    (running,) = queues.running("train")
    assert running["spec"]["nodeName"] == queues.gangs.nodes[0]
    assert _state(queues.until("admitted", "train", _is("Admitted"))) == "Ready"
    # Kueue has counted devices: its quota of DeviceClasses is in charge.
    settles(lambda: _usage(queues.bed), 8)


def test_a_job_of_several_pods_becomes_a_gang_that_is_placed_all_together(queues: Queues) -> None:
    queues.half_full()
    queues.job("both", gpus=4, pods=2)
    workload = queues.until("admitted", "both", _is("Admitted"))
    members = queues.running("both", 2)
    label = {one["metadata"]["labels"][gang.LABEL] for one in members}
    assert label == {workload["metadata"]["name"]}
    found = queues.gangs.reaches(next(iter(label)), "Running")
    assert found["spec"]["size"] == 2
    assert {one["spec"]["nodeName"] for one in members} == set(queues.gangs.nodes)
    assert exclusive(queues.claims("both"))
    assert [len(list(devices(one))) for one in queues.claims("both")] == [4, 4]


def test_of_two_jobs_for_the_same_devices_one_starts(queues: Queues) -> None:
    first, second = queues.gangs.nodes
    queues.gangs.holder(f"holder-{first}", first, 4)
    for name in ("one", "two"):
        queues.job(name, gpus=8, queue="wide")
    started, waiting = until("one is Ready", lambda: _ready_first(queues, "one", "two"))
    (running,) = queues.running(started)
    assert running["spec"]["nodeName"] == second
    queues.until("told why", waiting, lambda one: "0 of 1 members fit" in _message(one))
    assert not queues.pods(waiting)
    queues.bed.kubectl("delete", "job", "-n", queues.namespace, started)
    queues.running(waiting)


def test_a_job_that_no_node_could_ever_take_is_rejected_with_the_reason(queues: Queues) -> None:
    queues.job("huge", gpus=9, queue="wide")
    found = queues.until("deactivated", "huge", lambda one: one["spec"].get("active") is False)
    assert not queues.pods("huge")
    assert not _is("Admitted")(found)
    (told, *_) = until("an event says so", lambda: queues.events("NotPlaceableRejected"))
    assert "0 of 1 members fit" in told


def test_a_job_without_claims_is_not_held_up(queues: Queues) -> None:
    queues.job("plain", gpus=0)
    found = queues.until("admitted", "plain", _is("Admitted"))
    assert "names a resource claim" in _message(found)
    queues.running("plain")


@pytest.mark.parametrize("version", KNOWN)
def test_each_version_of_its_api_takes_and_keeps_what_we_write(
    queues: Queues, version: str
) -> None:
    name = f"foreign-{version}"
    foreign = {"controllerName": "test.dragoon.dev/foreign"}
    queues.bed.apply(
        {"apiVersion": _API, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": foreign},
        {
            "apiVersion": _API,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": name},
            "value": 7,
        },
        _cluster_queue(name, 16, check=name),
        _local(name, queues.namespace),
    )
    kubeconfig = Path(queues.bed.cluster.state.kubeconfigs["admin"])
    writer = Writer(kubeconfig, Apis(version), name)
    writer.activate()
    # Kueue 0.17 converts a Workload without a priority class so that v1beta1 takes no write at all.
    queues.job("contract", gpus=1, queue=name, priority=name)
    # Kueue writes quota and checks one after the other, in either order.
    found = queues.until(
        "has quota and its check",
        "contract",
        lambda one: _is("QuotaReserved")(one) and _names_of_checks(one) == [name],
    )
    writer.say(found, State.RETRY, requeueAfterSeconds=3600)
    queues.until("waits for an hour", "contract", _waits)
    update = {"name": "main", "annotations": {"test/told": version}, "labels": {"test/told": "too"}}
    writer.say(found, State.READY, at_once=True, podSetUpdates=[update])
    (running,) = queues.running("contract")
    assert running["metadata"]["annotations"]["test/told"] == version
    assert running["metadata"]["labels"]["test/told"] == "too"


def _waits(found: Object) -> bool:
    return bool((found["status"].get("requeueState") or {}).get("requeueAt"))


def _is(condition: str) -> Callable[[Object], bool]:
    def holds(found: Object) -> bool:
        conditions = (found.get("status") or {}).get("conditions") or ()
        return any((one["type"], one["status"]) == (condition, "True") for one in conditions)

    return holds


def _checks(found: Object | None) -> Sequence[Object]:
    return ((found or {}).get("status") or {}).get("admissionChecks") or ()


def _names_of_checks(found: Object) -> list[str]:
    return [one["name"] for one in _checks(found)]


def _check(found: Object | None) -> Object:
    return next((one for one in _checks(found) if one["name"] == "placeable"), {})


def _state(found: Object | None) -> str:
    return str(_check(found).get("state") or "")


def _ready_first(queues: Queues, *jobs: str) -> list[str]:
    """The jobs, that of which the check is Ready first; none unless it is just one."""
    ready = {job: _state(queues.workload(job)) == "Ready" for job in jobs}
    return sorted(jobs, key=lambda job: not ready[job]) if sum(ready.values()) == 1 else []


def _message(found: Object) -> str:
    return str(_check(found).get("message") or "")


def _unschedulable(pods: Sequence[Object]) -> bool:
    return bool(pods) and all(
        any(
            one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable"
            for one in (made.get("status") or {}).get("conditions") or ()
        )
        for made in pods
    )


def _usage(bed: Bed) -> int:
    """The GPUs that Kueue has given out in the queue of the page."""
    queue = bed.get("clusterqueue", "gpus")
    assert queue is not None
    return sum(
        int(resource["total"])
        for flavor in queue["status"]["flavorsUsage"]
        for resource in flavor["resources"]
        if resource["name"] == _GPUS
    )


def _cluster_queue(name: str, gpus: int, *, check: str = "") -> Object:
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": check}]}}
    quota = [{"name": _GPUS, "nominalQuota": gpus}]
    return {
        "apiVersion": _API,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {},
            **(strategy if check else {}),
            "resourceGroups": [
                {"coveredResources": [_GPUS], "flavors": [{"name": "any-node", "resources": quota}]}
            ],
        },
    }


def _local(queue: str, namespace: str) -> Object:
    return {
        "apiVersion": _API,
        "kind": "LocalQueue",
        "metadata": {"name": queue, "namespace": namespace},
        "spec": {"clusterQueue": queue},
    }
