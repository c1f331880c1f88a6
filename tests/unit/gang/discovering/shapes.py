"""Pods as other projects make them, one shape for each source, with what is to be read from them."""

from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.kube.port import (
    COSCHEDULING_GROUPS,
    JOB_SETS,
    KAI_GROUPS,
    KOORDINATOR_GROUPS,
    POD_GANGS,
    POD_GROUPS,
    RAY_CLUSTERS,
    VOLCANO_GROUPS,
    Resource,
)
from tests.unit.gang.records_for_tests import Groups


@dataclass(frozen=True)
class Shape:
    """A pod: labels, annotations, other fields of its spec; objects: specs by kind and name."""

    source: str
    group: str
    minimum: int
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    objects: dict[tuple[Resource, str], Any] = field(default_factory=dict)
    total: int | None = None
    slot: str = ""
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.source

    @property
    def groups(self) -> Groups:
        return Groups(self.objects)


_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_WORKERS: Final = [
    {"groupName": "small", "replicas": 3, "minReplicas": 1, "maxReplicas": 5},
    {"groupName": "pairs", "replicas": 2, "minReplicas": 1, "maxReplicas": 4, "numOfHosts": 2},
    {"groupName": "off", "replicas": 9, "maxReplicas": 9, "suspend": True},
]
_JOB_SET: Final = {
    "replicatedJobs": [
        {
            "name": "driver",
            "template": {"spec": {"parallelism": 1, "completions": 1, "template": {}}},
        },
        {
            "name": "workers",
            "replicas": 2,
            "template": {"spec": {"parallelism": 16, "completions": 16, "template": {}}},
        },
        {
            "name": "eval",
            "groupName": "eval",
            "replicas": 3,
            "template": {"spec": {"parallelism": 8, "completions": 2, "template": {}}},
        },
    ]
}
_JOB_SET_LABELS: Final = {
    "jobset.sigs.k8s.io/jobset-name": "pretrain",
    "jobset.sigs.k8s.io/replicatedjob-name": "workers",
    "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
    "jobset.sigs.k8s.io/job-index": "1",
    "jobset.sigs.k8s.io/job-global-index": "2",
    "jobset.sigs.k8s.io/global-replicas": "6",
    "jobset.sigs.k8s.io/restart-attempt": "0",
    _INDEX: "7",
}

SHAPES: Final = (
    Shape(
        "PodGroup",
        "train",
        4,
        labels={_INDEX: "3"},
        spec={"schedulingGroup": {"podGroupName": "train"}},
        objects={(POD_GROUPS, "train"): {"schedulingPolicy": {"gang": {"minCount": 4}}}},
        slot="3",
    ),
    Shape(
        "Kueue",
        "sample",
        2,
        labels={
            "kueue.x-k8s.io/queue-name": "team",
            "kueue.x-k8s.io/pod-group-name": "sample",
            "kueue.x-k8s.io/pod-group-pod-index": "1",
            "kueue.x-k8s.io/managed": "true",
        },
        annotations={"kueue.x-k8s.io/pod-group-total-count": "2"},
        total=2,
        slot="1",
    ),
    Shape(
        "Kueue",
        "sample",
        2,
        annotations={
            "kueue.x-k8s.io/pod-group-name": "sample",
            "kueue.x-k8s.io/pod-group-total-count": "2",
        },
        total=2,
        name="Kueue, the group in an annotation",
    ),
    Shape(
        "coscheduling",
        "nginx",
        3,
        labels={"scheduling.x-k8s.io/pod-group": "nginx"},
        objects={(COSCHEDULING_GROUPS, "nginx"): {"minMember": 3, "scheduleTimeoutSeconds": 10}},
    ),
    Shape(
        "Volcano",
        "mpi-1f6e",
        3,
        labels={"volcano.sh/job-name": "mpi", "volcano.sh/task-spec": "worker"},
        annotations={
            "scheduling.k8s.io/group-name": "mpi-1f6e",
            "volcano.sh/task-spec": "worker",
            "volcano.sh/task-index": "1",
        },
        spec={"schedulerName": "volcano"},
        objects={
            (VOLCANO_GROUPS, "mpi-1f6e"): {
                "minMember": 3,
                "minTaskMember": {"master": 1, "worker": 2, "watcher": 0},
                "queue": "default",
            }
        },
        slot="worker/1",
    ),
    Shape(
        "Volcano",
        "pg",
        2,
        annotations={"scheduling.volcano.sh/group-name": "pg"},
        objects={(VOLCANO_GROUPS, "pg"): {"minMember": 2}},
        name="Volcano, a PodGroup of its own",
    ),
    Shape(
        "Koordinator",
        "gang-a",
        2,
        annotations={
            "gang.scheduling.koordinator.sh/name": "gang-a",
            "gang.scheduling.koordinator.sh/min-available": "2",
            "gang.scheduling.koordinator.sh/total-number": "5",
            "gang.scheduling.koordinator.sh/network-topology-index": "4",
        },
        total=5,
        slot="4",
    ),
    Shape(
        "Koordinator",
        "gang-b",
        6,
        labels={"pod-group.scheduling.sigs.k8s.io": "gang-b"},
        objects={(KOORDINATOR_GROUPS, "gang-b"): {"minMember": 6}},
        name="Koordinator, a PodGroup",
    ),
    Shape(
        "KAI",
        "pg-ddp-7a",
        8,
        labels={"kai.scheduler/queue": "research", _INDEX: "5"},
        annotations={"pod-group-name": "pg-ddp-7a"},
        objects={(KAI_GROUPS, "pg-ddp-7a"): {"minMember": 8, "queue": "research"}},
        slot="5",
    ),
    Shape(
        "KAI",
        "pg-llm",
        3,
        labels={"kai.scheduler/subgroup-name": "decode"},
        annotations={"pod-group-name": "pg-llm"},
        objects={
            (KAI_GROUPS, "pg-llm"): {
                "minSubGroup": 1,
                "subGroups": [
                    {"name": "all", "minSubGroup": 2},
                    {"name": "prefill", "parent": "all", "minMember": 1},
                    {"name": "decode", "parent": "all", "minMember": 2},
                ],
            }
        },
        name="KAI, a tree of subgroups",
    ),
    Shape(
        "YuniKorn",
        "spark-17/executors",
        5,
        labels={"applicationId": "spark-17"},
        annotations={
            "yunikorn.apache.org/task-group-name": "executors",
            "yunikorn.apache.org/task-groups": (
                '[{"name": "driver", "minMember": 1, "minResource": {"cpu": "1"}},'
                ' {"name": "executors", "minMember": 5, "minResource": {"cpu": "1"}}]'
            ),
        },
    ),
    Shape(
        "LeaderWorkerSet",
        "llm/1",
        4,
        labels={
            "leaderworkerset.sigs.k8s.io/name": "llm",
            "leaderworkerset.sigs.k8s.io/group-index": "1",
            "leaderworkerset.sigs.k8s.io/group-key": "f1f3e1a0",
            "leaderworkerset.sigs.k8s.io/worker-index": "2",
            "leaderworkerset.sigs.k8s.io/template-revision-hash": "5c7b",
            "apps.kubernetes.io/pod-index": "2",
        },
        annotations={
            "leaderworkerset.sigs.k8s.io/size": "4",
            "leaderworkerset.sigs.k8s.io/leader-name": "llm-1",
        },
        total=4,
        slot="2",
    ),
    Shape(
        "JobSet",
        "pretrain/default",
        33,
        labels=_JOB_SET_LABELS,
        objects={(JOB_SETS, "pretrain"): _JOB_SET},
        total=33,
        slot="workers/1/7",
        name="JobSet before it had groups",
    ),
    Shape(
        "JobSet",
        "pretrain/eval",
        6,
        labels={
            **_JOB_SET_LABELS,
            "jobset.sigs.k8s.io/group-name": "eval",
            "jobset.sigs.k8s.io/group-replicas": "3",
        },
        objects={(JOB_SETS, "pretrain"): _JOB_SET},
        total=6,
        slot="workers/1/7",
    ),
    Shape(
        "Grove",
        "serve-0",
        3,
        labels={
            "grove.io/podgang": "serve-0",
            "grove.io/podclique": "serve-0-decode",
            "grove.io/podclique-pod-index": "1",
        },
        objects={
            (POD_GANGS, "serve-0"): {
                "podgroups": [
                    {
                        "name": "serve-0-prefill",
                        "minReplicas": 1,
                        "podReferences": [{"namespace": "team", "name": "a"}],
                    },
                    {
                        "name": "serve-0-decode",
                        "minReplicas": 2,
                        "podReferences": [
                            {"namespace": "team", "name": name} for name in ("b", "c", "d")
                        ],
                    },
                ]
            }
        },
        total=4,
        slot="serve-0-decode/1",
    ),
    Shape(
        "KubeRay",
        "ray",
        8,
        labels={
            "ray.io/cluster": "ray",
            "ray.io/node-type": "worker",
            "ray.io/group": "pairs",
            "ray.io/is-ray-node": "yes",
        },
        objects={(RAY_CLUSTERS, "ray"): {"workerGroupSpecs": _WORKERS}},
        total=8,
    ),
    Shape(
        "KubeRay",
        "ray",
        4,
        labels={"ray.io/cluster": "ray", "ray.io/node-type": "head", "ray.io/group": "headgroup"},
        objects={
            (RAY_CLUSTERS, "ray"): {"enableInTreeAutoscaling": True, "workerGroupSpecs": _WORKERS}
        },
        total=14,
        name="KubeRay with autoscaling",
    ),
)
