"""Every source of groups, on pods as its project makes them; and what is wrong with such pods."""

from collections.abc import Mapping
from typing import Any

import pytest

from dragoon.gang.discovering.answers import Answer
from dragoon.gang.discovering.grouping import answers_of, slot_of, stays_out
from dragoon.gang.discovering.sizes import size_of
from dragoon.gang.discovering.table import JOB, SOURCES
from dragoon.gang.records import PodRecord
from dragoon.kube.port import (
    COSCHEDULING_GROUPS,
    JOB_SETS,
    KAI_GROUPS,
    POD_GANGS,
    POD_GROUPS,
    RAY_CLUSTERS,
    VOLCANO_GROUPS,
    Resource,
)
from tests.unit.gang.discovering.shapes import SHAPES, Shape
from tests.unit.gang.records_for_tests import Groups, ground, job, pod

BY_NAME = {shape.source: shape for shape in SHAPES}


def pod_of(shape: Shape, **more: Any) -> PodRecord:
    return pod(
        "p",
        size=None,
        labels={**shape.labels, **more.pop("labels", {})},
        annotations={**shape.annotations, **more.pop("annotations", {})},
        **{**shape.spec, **more},
    )


def only(found: tuple[Answer, ...]) -> Answer:
    (answer,) = found
    return answer


def test_every_source_has_a_shape_and_a_name_of_its_own() -> None:
    names = [source.name for source in SOURCES]
    assert len(set(names)) == len(names)
    # Kubeflow says no number.
    assert {shape.source for shape in SHAPES} == set(names) - {"Kubeflow"}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_pod_of_a_source_says_its_group_its_numbers_and_which_member_it_is(shape: Shape) -> None:
    found = only(answers_of(pod_of(shape), ground(groups=shape.groups)))
    assert (found.source, found.group, found.wrong) == (shape.source, shape.group, "")
    assert (found.numbers.minimum, found.numbers.total) == (shape.minimum, shape.total)
    assert slot_of(pod_of(shape)) == shape.slot
    assert size_of(pod_of(shape), ground(groups=shape.groups)).number == shape.minimum


@pytest.mark.parametrize("shape", [one for one in SHAPES if one.objects], ids=str)
def test_a_group_object_that_is_not_there_is_waited_for_by_name(shape: Shape) -> None:
    (resource, name) = next(iter(shape.objects))
    found = size_of(pod_of(shape), ground())
    assert (found.number, found.wrong) == (None, "")
    assert found.waits == (
        f"{resource.kind} {name} ({resource.api_version}): the API server does not have "
        f"{resource.api_version}"
    )
    other = Groups({(resource, "another"): {}})
    assert size_of(pod_of(shape), ground(groups=other)).waits.endswith("it is not there")


@pytest.mark.parametrize("shape", [one for one in SHAPES if one.objects], ids=str)
def test_a_group_object_of_an_unknown_version_is_refused(shape: Shape) -> None:
    (resource, _) = next(iter(shape.objects))
    served = Groups(served={resource.group: ("v9", "v9beta1")})
    found = size_of(pod_of(shape), ground(groups=served))
    assert f"apiVersion: found v9, v9beta1, allowed is {resource.version}" in found.wrong


WRONG: list[tuple[Resource, Any, str]] = [
    (POD_GROUPS, None, "spec: found none, allowed is an object"),
    (POD_GROUPS, {"schedulingPolicy": "gang"}, "spec.schedulingPolicy: found 'gang', allowed is"),
    (
        POD_GROUPS,
        {"schedulingPolicy": {"gang": None}},
        "schedulingPolicy.gang: found none, allowed",
    ),
    (
        COSCHEDULING_GROUPS,
        {},
        "spec.minMember: found none, allowed is a whole number from 1 to 4096",
    ),
    (COSCHEDULING_GROUPS, {"minMember": True}, "spec.minMember: found True, allowed is a whole"),
    (COSCHEDULING_GROUPS, {"minMember": 10**30}, "spec.minMember: found a larger number, allowed"),
    (VOLCANO_GROUPS, {"minMember": 0}, "spec.minMember: found 0, allowed is a whole number"),
    (
        VOLCANO_GROUPS,
        {"minMember": 1, "minTaskMember": {"ps": "x"}},
        "spec.minTaskMember.ps: found 'x', allowed is a whole number",
    ),
    (
        KAI_GROUPS,
        {"minSubGroup": 1, "subGroups": [{"name": "a", "minMember": 1}, {"name": "b"}]},
        "spec.minSubGroup: found 1 of 2, allowed is all",
    ),
    (
        KAI_GROUPS,
        {"subGroups": [{"name": "a"}]},
        "spec.subGroups[0].minMember: found none, allowed",
    ),
    (KAI_GROUPS, {"subGroups": {"name": "a"}}, "spec.subGroups: found {'name': 'a'}, allowed is a"),
    (POD_GANGS, {}, "spec.podgroups: found none, allowed is a list"),
    (POD_GANGS, {"podgroups": []}, "the minimum of all parts: found 0, allowed"),
    (
        POD_GANGS,
        {"podgroups": [{"name": "a", "minReplicas": 1}]},
        "spec.podgroups[0].podReferences: found none, allowed is a list",
    ),
    (
        RAY_CLUSTERS,
        {"workerGroupSpecs": [{"groupName": "a", "replicas": -1}]},
        "spec.workerGroupSpecs[0].replicas: found -1, allowed is a whole number",
    ),
    (JOB_SETS, {}, "spec.replicatedJobs: found none, allowed is a list"),
    (JOB_SETS, {"replicatedJobs": []}, "of group default: pods: found 0, allowed"),
    (
        JOB_SETS,
        {"replicatedJobs": [{"name": "a"}]},
        "spec.replicatedJobs[0].template: found none, allowed is an object",
    ),
    (
        JOB_SETS,
        {
            "startupPolicy": {"startupPolicyOrder": "InOrder"},
            "replicatedJobs": [{"name": "a"}, {"name": "b"}],
        },
        "spec.startupPolicy.startupPolicyOrder: found 'InOrder', allowed is AnyOrder",
    ),
    (
        JOB_SETS,
        {"replicatedJobs": [{"name": "a"}, {"name": "b", "dependsOn": [{"name": "a"}]}]},
        "spec.replicatedJobs[1].dependsOn: found [{'name': 'a'}], allowed is none",
    ),
]


@pytest.mark.parametrize(("resource", "spec", "told"), WRONG)
def test_fields_that_are_missing_or_wrong_are_told_with_what_is_allowed(
    resource: Resource, spec: Any, told: str
) -> None:
    shape = next(one for one in SHAPES if any(kind == resource for kind, _ in one.objects))
    name = next(iter(shape.objects))[1]
    groups = Groups({(resource, name): {} if spec is None else spec})
    if spec is None:
        groups = _Broken(resource)
    found = size_of(pod_of(shape), ground(groups=groups))
    assert found.number is None
    assert told in found.wrong
    assert f"{resource.kind} {name}" in found.wrong or "minimum of all parts" in told


class _Broken(Groups):
    """An object without a spec."""

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self._resource = resource

    def find(self, resource: Resource, namespace: str, name: str) -> Mapping[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("source", "annotations", "told"),
    [
        ("Kueue", {"kueue.x-k8s.io/pod-group-total-count": "two"}, "found 'two', allowed is"),
        ("LeaderWorkerSet", {"leaderworkerset.sigs.k8s.io/size": "0"}, "found '0', allowed is"),
        (
            "YuniKorn",
            {"yunikorn.apache.org/task-groups": "{"},
            "annotation yunikorn.apache.org/task-groups: found no JSON",
        ),
        (
            "YuniKorn",
            {"yunikorn.apache.org/task-groups": '[{"name": "other", "minMember": 1}]'},
            "allowed is a list with executors",
        ),
        (
            "YuniKorn",
            {"yunikorn.apache.org/task-groups": '[{"name": "executors"}]'},
            "minMember of executors: found none",
        ),
    ],
)
def test_annotations_that_are_wrong_are_told(
    source: str, annotations: dict[str, str], told: str
) -> None:
    found = size_of(pod_of(BY_NAME[source], annotations=annotations), ground())
    assert found.number is None
    assert told in found.wrong


@pytest.mark.parametrize(
    "annotation", ["kueue.x-k8s.io/pod-group-total-count", "leaderworkerset.sigs.k8s.io/size"]
)
def test_an_annotation_that_is_missing_is_told_by_name(annotation: str) -> None:
    shape = next(one for one in SHAPES if annotation in one.annotations)
    said = {name: text for name, text in shape.annotations.items() if name != annotation}
    bare = pod("p", size=None, labels=shape.labels, annotations=said)
    assert f"annotation {annotation}: found none, allowed is" in size_of(bare, ground()).wrong


def test_two_places_that_name_two_groups_are_refused() -> None:
    shape = BY_NAME["Kueue"]
    torn = pod_of(
        next(one for one in SHAPES if one.source == "Kueue" and one.labels),
        annotations={"kueue.x-k8s.io/pod-group-name": "another"},
    )
    found = only(answers_of(torn, ground(groups=shape.groups)))
    assert found.group == ""
    assert found.wrong == (
        "Kueue: found 'sample' in label kueue.x-k8s.io/pod-group-name, 'another' in annotation "
        "kueue.x-k8s.io/pod-group-name; allowed is one"
    )


def test_two_sources_with_two_numbers_are_refused_unless_we_are_told_which_counts() -> None:
    lws, kueue = BY_NAME["LeaderWorkerSet"], BY_NAME["Kueue"]
    both = {
        "labels": kueue.labels,
        "annotations": {**kueue.annotations},
    }
    found = size_of(pod_of(lws, **both), ground())
    assert found.number is None
    assert "two sizes: Kueue sample says 2, LeaderWorkerSet llm/1 says 4" in found.wrong
    for choice, number in (("Kueue", 2), ("LeaderWorkerSet", 4)):
        both["annotations"]["dragoon.dev/gang-source"] = choice
        assert size_of(pod_of(lws, **both), ground()).number == number
    both["annotations"] = {**kueue.annotations, "dragoon.dev/gang-size": "3"}
    assert size_of(pod_of(lws, **both), ground()).number == 3


def test_a_source_that_is_chosen_and_does_not_know_the_pod_is_told() -> None:
    for choice in ("JobSet", "Nobody"):
        one = pod_of(BY_NAME["LeaderWorkerSet"], annotations={"dragoon.dev/gang-source": choice})
        found = only(answers_of(one, ground()))
        assert f"found '{choice}', which does not know this pod" in found.wrong
        assert "LeaderWorkerSet" in found.wrong


def test_pods_whose_label_alone_counts_are_of_no_source() -> None:
    one = pod_of(BY_NAME["LeaderWorkerSet"], annotations={"dragoon.dev/gang-scope": "name"})
    assert answers_of(one, ground()) == ()


def test_placeholders_of_yunikorn_are_never_members() -> None:
    shape = BY_NAME["YuniKorn"]
    assert stays_out(pod_of(shape, annotations={"yunikorn.apache.org/placeholder": "true"}))
    assert not stays_out(pod_of(shape, annotations={"yunikorn.apache.org/placeholder": "false"}))
    assert not stays_out(pod_of(shape))


def test_a_yunikorn_pod_that_another_one_starts_says_no_number() -> None:
    said = {"yunikorn.apache.org/task-group-name": "executors"}
    one = pod("p", size=None, labels={"applicationId": "spark-17"}, annotations=said)
    assert only(answers_of(one, ground())).numbers.minimum is None
    assert "annotation dragoon.dev/gang-size: found none" in size_of(one, ground()).wrong


def test_a_native_group_without_gang_policy_has_the_parallelism_of_its_job() -> None:
    groups = Groups({(POD_GROUPS, "train"): {"schedulingPolicy": {"basic": {}}}})
    one = pod("p", size=None, owner="j", schedulingGroup={"podGroupName": "train"})
    assert size_of(one, ground(job("j", parallelism=3), groups=groups)).number == 3


def test_a_pytorch_job_says_who_is_who_and_its_size_is_ours_to_say() -> None:
    labels = {
        "training.kubeflow.org/job-name": "tune",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "2",
    }
    one = pod("p", size="4", owner="tune", kind="PyTorchJob", labels=labels)
    assert str(only(answers_of(one, ground()))) == "Kubeflow tune"
    assert slot_of(one) == "worker/2"
    assert size_of(one, ground()).number == 4


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        # Argo Workflows: each step is a pod of its own, with nothing about a group.
        (
            {
                "workflows.argoproj.io/workflow": "etl-x7",
                "workflows.argoproj.io/completed": "false",
            },
            {"workflows.argoproj.io/node-name": "etl-x7.step-1"},
        ),
        # KServe: a Deployment of servers, each useful alone.
        (
            {"serving.kserve.io/inferenceservice": "bert", "pod-template-hash": "5f6c"},
            {"serving.kserve.io/dra-device-class": "gpu.dragoon.dev"},
        ),
    ],
)
def test_argo_and_kserve_pods_are_in_no_group_of_others(
    labels: dict[str, str], annotations: dict[str, str]
) -> None:
    one = pod("p", size="2", labels=labels, annotations=annotations)
    assert answers_of(one, ground()) == ()
    # With our label and size they are members like any others.
    assert size_of(one, ground()).number == 2


def test_jobs_that_start_one_after_the_other_can_be_groups_of_their_own() -> None:
    shape = next(one for one in SHAPES if one.group == "pretrain/eval")
    (name, spec), *_ = shape.objects.items()
    jobs = [{**one, "dependsOn": [{"name": "x"}]} for one in spec["replicatedJobs"]]
    order = {"startupPolicyOrder": "InOrder"}
    groups = Groups({name: {"replicatedJobs": jobs, "startupPolicy": order}})
    assert size_of(pod_of(shape), ground(groups=groups)).number == 6


def test_in_a_group_of_several_owners_an_index_is_one_of_its_owner() -> None:
    said = {"scheduling.x-k8s.io/pod-group": "pg", "apps.kubernetes.io/pod-index": "4"}
    assert slot_of(pod("p", owner="sts", kind="StatefulSet", labels=said)) == "sts/4"
    assert slot_of(pod("p", owner="sts", kind="StatefulSet")) == ""
    index = {"batch.kubernetes.io/job-completion-index": "4"}
    scope = {"dragoon.dev/gang-scope": "name"}
    assert slot_of(pod("p", owner="j", labels=index, annotations=scope)) == "j/4"


def test_a_pod_of_no_source_has_the_index_of_its_job_as_slot() -> None:
    assert slot_of(pod("p", labels={"batch.kubernetes.io/job-completion-index": "4"})) == "4"
    assert slot_of(pod("p", annotations={"batch.kubernetes.io/job-completion-index": "5"})) == "5"
    assert slot_of(pod("p", labels={"apps.kubernetes.io/pod-index": "6"})) == "6"
    assert slot_of(pod("p")) == ""
    assert JOB.numbers(pod("p", owner="j"), "", ground(job("j", completions=2))).minimum == 1


def test_a_name_that_is_too_long_for_an_object_is_told() -> None:
    found = only(answers_of(pod("p", annotations={"pod-group-name": "x" * 300}), ground()))
    assert found.group == ""
    assert "found 'xxxxxxxxxxxxxxxxxxxx'... of 300 characters, allowed are 253" in found.wrong
