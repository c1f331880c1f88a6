"""Which pods an object stands for, and how many."""

import pytest

from dragoon.diagnose.manifests import Manifests
from dragoon.diagnose.workloads import PER_NODE, pod_templates
from tests.unit.diagnose.cases import Raw, case, manifests, needs_case_files


def templates(found: Manifests) -> list[tuple[str, str, int]]:
    return [(pod.name, pod.path, pod.count) for item in found.items for pod in pod_templates(item)]


def test_a_typed_list_is_its_items_with_their_kind() -> None:
    found = manifests(
        {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]},
        {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node"}]},
    )
    assert [(item.kind, item.api_version) for item in found.items] == [
        ("Pod", "v1"),
        ("Node", "v1"),
    ]


def test_objects_without_a_namespace_are_in_the_default_one_if_they_have_any() -> None:
    pod, node = manifests(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},
    ).items
    assert (pod.namespace, str(pod)) == ("default", "Pod default/a")
    assert (node.namespace, str(node)) == ("", "Node a")


@pytest.mark.parametrize("content", ["42", "[1]", "a: 1", "kind: Pod", "text"])
def test_a_document_that_is_not_kubernetes_is_kept_apart(content: str) -> None:
    found = manifests("kind: Pod\napiVersion: v1", content)
    assert len(found.items) == 1
    assert [bad.origin.document for bad in found.foreign] == [2]


@needs_case_files
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m01", [("notebook", "spec", 1)]),
        ("m05", [("quarter", "spec.template.spec", 6)]),
        ("m09", [("ddp", "spec.template.spec", 4)]),
        (
            "m10",
            [
                ("tune-master", "spec.pytorchReplicaSpecs.Master.template.spec", 1),
                ("tune-worker", "spec.pytorchReplicaSpecs.Worker.template.spec", 3),
            ],
        ),
        (
            "m11",
            [
                ("pretrain-rack-0", "spec.replicatedJobs[0].template.spec.template.spec", 16),
                ("pretrain-rack-1", "spec.replicatedJobs[1].template.spec.template.spec", 16),
            ],
        ),
        (
            "m12",
            [
                ("llm-leader", "spec.leaderWorkerTemplate.leaderTemplate.spec", 2),
                ("llm-worker", "spec.leaderWorkerTemplate.workerTemplate.spec", 2),
            ],
        ),
        ("m13", [("nccl", "spec.template.spec", 2)]),
        ("m18", [("quick-t", "spec.tasks[0].template.spec", 1), ("pinned", "spec", 1)]),
    ],
)
def test_the_pods_of_the_case_manifests(name: str, expected: list[tuple[str, str, int]]) -> None:
    assert templates(case(name)) == expected


def test_other_workloads_are_counted_as_their_controllers_do() -> None:
    spec: Raw = {"template": {"spec": {}}}
    found = manifests(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec},
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {**spec, "parallelism": 8, "completions": 3},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "c"},
            "spec": {"jobTemplate": {"spec": {**spec, "parallelism": 2}}},
        },
        {"apiVersion": "example.com/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec},
    )
    assert templates(found) == [
        ("d", "spec.template.spec", PER_NODE),
        ("j", "spec.template.spec", 3),
        ("c", "spec.jobTemplate.spec.template.spec", 2),
    ]


def test_a_workload_of_a_wrong_shape_has_pods_without_a_spec_and_does_not_fail() -> None:
    found = manifests(
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": "none"},
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": 3}},
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"tfReplicaSpecs": [1]}},
    )
    assert [dict(pod.spec) for item in found.items for pod in pod_templates(item)] == [{}]
