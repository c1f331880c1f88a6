"""Groups of other projects on a real cluster: their shapes, made here; no such project is installed.

Plain Jobs are in test_gangs, native PodGroups in test_native_gangs, Kueue's in test_kueue.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from dragoon.api import gang
from dragoon.kube.port import COSCHEDULING_GROUPS, JOB_SETS, Resource
from testbed.bed import Bed
from testbed.objects import SLEEP, claim_spec, container, pod
from testbed.serving import until_served
from testbed.waiting import until
from tests.e2e.gangs import PAIR, Gangs, condition, devices, exclusive, is_allocated, is_gated

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

Object = dict[str, Any]

_LWS = "leaderworkerset.sigs.k8s.io"
_JOB_SET = "jobset.sigs.k8s.io"
_KUBEFLOW = "training.kubeflow.org"


@pytest.fixture(scope="module")
def job_sets(bed: Bed) -> Iterator[None]:
    """The API of JobSet, with a layout that takes everything."""
    bed.apply(_definition(JOB_SETS))
    until_served(bed.cluster, _name(JOB_SETS))
    yield
    bed.kubectl("delete", "crd", _name(JOB_SETS))


def test_each_replica_of_a_leader_worker_set_is_placed_by_itself(gangs: Gangs) -> None:
    """Two replicas of two pods with a linked pair each, and four pairs are free: m12 with pairs."""
    gangs.template("pair", PAIR)
    for node in gangs.nodes:
        gangs.holder(f"busy-{node}", node, 4)
    for replica in range(3):
        _replica(gangs, replica)
    found = until("two of three replicas run", lambda: _two_running(gangs))
    assert set(found) == {f"llm/{replica}" for replica in range(3)}
    claims = gangs.claims("llm")
    assert exclusive(claims)
    assert sum(map(is_allocated, claims)) == 4
    waiting = [made for made in gangs.pods("llm") if is_gated(made)]
    assert len({made["metadata"]["labels"][f"{_LWS}/group-index"] for made in waiting}) == 1

    gangs.bed.kubectl(
        "delete", "pod", "-n", gangs.namespace, f"busy-{gangs.nodes[0]}", "--wait=false"
    )
    gangs.running("llm", 6)
    _gone(gangs, "llm")


@pytest.mark.usefixtures("job_sets")
def test_a_job_set_is_one_gang_and_its_members_are_where_they_were_when_it_is_started_again(
    gangs: Gangs,
) -> None:
    """Real Jobs under an object of its API: a driver and two Jobs of workers (m11 in small)."""
    gangs.template("two", claim_spec(2))
    parts = {"driver": (1, 1), "workers": (2, 2)}
    _job_set(gangs, "set", parts)
    owner = gangs.bed.get("jobset", "set", gangs.namespace)
    assert owner is not None
    _jobs(gangs, owner, parts, attempt=0)
    gangs.running("set", 5)
    (made,) = _by_group(gangs).values()
    assert made["spec"]["size"] == 5
    assert [one["kind"] for one in made["metadata"]["ownerReferences"]] == ["JobSet"]
    before = _places(gangs, "set")
    assert len(before) == 5
    assert len(set(before.values())) == 2

    # As its controller does it: the pods are gone before there are Jobs of these names again.
    gangs.bed.kubectl("delete", "job", "--all", "-n", gangs.namespace, "--cascade=foreground")
    _jobs(gangs, owner, parts, attempt=1)
    until("all pods are of the second attempt", lambda: _attempts(gangs, "set") == {"1"})
    gangs.running("set", 5)
    assert _places(gangs, "set") == before
    assert exclusive(gangs.claims("set"))
    (again,) = _by_group(gangs).values()
    assert again["metadata"]["uid"] == made["metadata"]["uid"]

    gangs.bed.kubectl("delete", "jobset", "set", "-n", gangs.namespace)
    gangs.left_nothing("set")


def test_a_pytorch_job_is_one_gang_of_pods_that_want_different_things(gangs: Gangs) -> None:
    """The master takes one GPU, a worker a linked pair (m10)."""
    gangs.template("one", claim_spec(1))
    gangs.template("pair", PAIR)
    for kind, number, wants in (("master", 1, "one"), ("worker", 3, "pair")):
        for index in range(number):
            labels = {
                f"{_KUBEFLOW}/job-name": "tune",
                f"{_KUBEFLOW}/operator-name": "pytorchjob-controller",
                f"{_KUBEFLOW}/replica-type": kind,
                f"{_KUBEFLOW}/replica-index": str(index),
            }
            size = {gang.ANNOTATION_SIZE: "4"}
            _pod(
                gangs,
                f"tune-{kind}-{index}",
                "tune",
                labels=labels,
                annotations=size,
                template=wants,
            )
    gangs.running("tune", 4)
    claims = gangs.claims("tune")
    assert exclusive(claims)
    assert sorted(len(list(devices(one))) for one in claims) == [1, 2, 2, 2]
    _gone(gangs, "tune")


def test_an_api_that_comes_later_is_found_and_one_that_is_not_there_is_said_on_the_gang(
    gangs: Gangs,
) -> None:
    gangs.template("one", claim_spec(1))
    for index in range(2):
        labels = {"scheduling.x-k8s.io/pod-group": "late"}
        _pod(gangs, f"late-{index}", "late", labels=labels, template="one")

    def told() -> Object | None:
        found = gangs.gang("late") or {}
        complete = condition(found, "Complete")
        missing = f"does not have {COSCHEDULING_GROUPS.api_version}"
        knows = complete.get("reason") == "GroupMissing" and missing in complete["message"]
        return found if knows else None

    assert until("the Gang says what is missing", told)["status"]["phase"] == "Gathering"

    gangs.bed.apply(_definition(COSCHEDULING_GROUPS))
    try:
        until_served(gangs.bed.cluster, _name(COSCHEDULING_GROUPS))
        gangs.bed.apply(
            {
                "apiVersion": COSCHEDULING_GROUPS.api_version,
                "kind": COSCHEDULING_GROUPS.kind,
                "metadata": {"name": "late", "namespace": gangs.namespace},
                "spec": {"minMember": 2},
            }
        )
        gangs.running("late", 2)
    finally:
        gangs.bed.kubectl("delete", "crd", _name(COSCHEDULING_GROUPS))
    _gone(gangs, "late")


def _replica(gangs: Gangs, replica: int) -> None:
    for index in range(2):
        labels = {
            f"{_LWS}/name": "llm",
            f"{_LWS}/group-index": str(replica),
            f"{_LWS}/group-key": f"key-{replica}",
            f"{_LWS}/worker-index": str(index),
        }
        name = f"llm-{replica}" if index == 0 else f"llm-{replica}-{index}"
        _pod(
            gangs,
            name,
            "llm",
            labels=labels,
            annotations={f"{_LWS}/size": "2"},
            template="pair",
        )


def _two_running(gangs: Gangs) -> dict[str, Object]:
    """The Gangs of the replicas, once two of the three run and the other one waits."""
    found = _by_group(gangs)
    phases = sorted((one.get("status") or {}).get("phase") or "" for one in found.values())
    return found if phases == ["Running", "Running", "Waiting"] else {}


def _pod(
    gangs: Gangs,
    name: str,
    label: str,
    *,
    labels: dict[str, str],
    annotations: dict[str, str] | None = None,
    template: str,
) -> None:
    made = pod(name, gangs.namespace, container("main", template), templates={template: template})
    made["metadata"] |= {"labels": {gang.LABEL: label, **labels}, "annotations": annotations or {}}
    gangs.bed.apply(made)


def _job_set(gangs: Gangs, name: str, parts: dict[str, tuple[int, int]]) -> None:
    replicated = [
        {
            "name": part,
            "replicas": replicas,
            "template": {"spec": {"parallelism": pods, "completions": pods}},
        }
        for part, (replicas, pods) in parts.items()
    ]
    gangs.bed.apply(
        {
            "apiVersion": JOB_SETS.api_version,
            "kind": JOB_SETS.kind,
            "metadata": {"name": name, "namespace": gangs.namespace},
            "spec": {"replicatedJobs": replicated},
        }
    )


def _jobs(gangs: Gangs, owner: Object, parts: dict[str, tuple[int, int]], *, attempt: int) -> None:
    """The Jobs of a JobSet, as its controller makes them for one attempt."""
    name = owner["metadata"]["name"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name,
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    # Cut off it ends as most programs do; with 0 it would have done its work, and its place go.
    main = container("main", "two", script=SLEEP.replace("exit 0", "exit 143"))
    member = pod(name, gangs.namespace, main, templates={"two": "two"})
    each = [(part, index, pods) for part, (jobs, pods) in parts.items() for index in range(jobs)]
    made = []
    for number, (part, index, pods) in enumerate(each):
        labels = {
            f"{_JOB_SET}/jobset-name": name,
            f"{_JOB_SET}/replicatedjob-name": part,
            f"{_JOB_SET}/job-index": str(index),
            f"{_JOB_SET}/job-global-index": str(number),
            f"{_JOB_SET}/restart-attempt": str(attempt),
        }
        made.append(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": f"{name}-{part}-{index}",
                    "namespace": gangs.namespace,
                    "labels": labels,
                    "ownerReferences": [reference],
                },
                "spec": {
                    "parallelism": pods,
                    "completions": pods,
                    "completionMode": "Indexed",
                    "template": {
                        "metadata": {"labels": {gang.LABEL: name, **labels}},
                        "spec": {**member["spec"], "restartPolicy": "Never"},
                    },
                },
            }
        )
    gangs.bed.apply(*made)


def _attempts(gangs: Gangs, label: str) -> set[str]:
    found = gangs.pods(label)
    return {made["metadata"]["labels"][f"{_JOB_SET}/restart-attempt"] for made in found}


def _places(gangs: Gangs, label: str) -> dict[tuple[str, str], str]:
    """Where each member is: Job and index -> node."""
    return {
        (
            made["metadata"]["labels"][f"{_JOB_SET}/job-global-index"],
            made["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"],
        ): made["spec"]["nodeName"]
        for made in gangs.pods(label)
    }


def _by_group(gangs: Gangs) -> dict[str, Object]:
    """The Gangs of groups of other projects, by group."""
    found = gangs.bed.items("gangs", "-n", gangs.namespace)
    return {one["spec"]["source"]["group"]: one for one in found if "source" in one["spec"]}


def _gone(gangs: Gangs, label: str) -> None:
    """Deletes the pods; afterwards nothing of their gangs is left."""
    selector = ("-l", f"{gang.LABEL}={label}")
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, *selector, "--wait=false")
    until(f"pods of {label} are gone", lambda: not gangs.pods(label))
    until("their gangs are gone", lambda: not _by_group(gangs))
    until("no rule is left", lambda: not gangs.rules())


def _name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}"


def _definition(resource: Resource) -> Object:
    """A CustomResourceDefinition with a layout that takes everything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group = resource.group
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": _name(resource),
            # What ends with k8s.io wants to be told whether it was reviewed.
            "annotations": {"api-approved.kubernetes.io": "unapproved, a shape for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "plural": resource.plural,
                "singular": resource.kind.lower(),
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": anything},
                }
            ],
        },
    }
