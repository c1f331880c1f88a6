"""The pods that an object stands for: where their template is, and how many there will be."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text

PER_NODE: Final = -1
"""The count of a DaemonSet: one pod for each node."""


@dataclass(frozen=True, slots=True, eq=False)
class PodTemplate:
    """Pods of one kind in an object. path: of the pod's spec in it. role: empty if there is one.

    count: how many pods, or PER_NODE.
    """

    item: Item
    role: str
    path: str
    spec: Raw
    labels: Raw
    annotations: Raw
    count: int

    @property
    def name(self) -> str:
        """What its pods are called, without their number."""
        return f"{self.item.name}-{self.role}" if self.role else self.item.name


def pod_templates(item: Item) -> tuple[PodTemplate, ...]:
    """All pods of the object; none for what makes no pods, or what is not known here."""
    finder = _FINDERS.get((item.group, item.kind)) or _GROUPS.get(item.group)
    return () if finder is None else tuple(finder(item))


def _number(value: Any, default: int = 1) -> int:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
    )


def _objects(item: Item, field: str) -> list[Raw]:
    """The entries of a list in the spec."""
    return [mapping(one) for one in listed(mapping(item.raw.get("spec")).get(field))]


def _made(item: Item, template: Any, path: str, count: int, role: str = "") -> PodTemplate:
    template = mapping(template)
    labels, annotations = _metadata(template)
    spec = mapping(template.get("spec"))
    return PodTemplate(item, role, f"{path}.spec", spec, labels, annotations, count)


def _metadata(raw: Raw) -> tuple[Raw, Raw]:
    """Labels and annotations."""
    metadata = mapping(raw.get("metadata"))
    return mapping(metadata.get("labels")), mapping(metadata.get("annotations"))


def _pod(item: Item) -> Iterator[PodTemplate]:
    labels, annotations = _metadata(item.raw)
    yield PodTemplate(item, "", "spec", mapping(item.raw.get("spec")), labels, annotations, 1)


def _replicated(item: Item) -> Iterator[PodTemplate]:
    spec = mapping(item.raw.get("spec"))
    yield _made(item, spec.get("template"), "spec.template", _number(spec.get("replicas")))


def _daemon_set(item: Item) -> Iterator[PodTemplate]:
    yield _made(item, mapping(item.raw.get("spec")).get("template"), "spec.template", PER_NODE)


def _job_count(spec: Raw) -> int:
    parallelism = _number(spec.get("parallelism"))
    return min(parallelism, _number(spec.get("completions"), parallelism))


def _job(item: Item) -> Iterator[PodTemplate]:
    spec = mapping(item.raw.get("spec"))
    yield _made(item, spec.get("template"), "spec.template", _job_count(spec))


def _cron_job(item: Item) -> Iterator[PodTemplate]:
    template = mapping(mapping(item.raw.get("spec")).get("jobTemplate"))
    spec = mapping(template.get("spec"))
    yield _made(item, spec.get("template"), "spec.jobTemplate.spec.template", _job_count(spec))


def _job_set(item: Item) -> Iterator[PodTemplate]:
    for index, job in enumerate(_objects(item, "replicatedJobs")):
        spec = mapping(mapping(job.get("template")).get("spec"))
        yield _made(
            item,
            spec.get("template"),
            f"spec.replicatedJobs[{index}].template.spec.template",
            _number(job.get("replicas")) * _job_count(spec),
            text(job.get("name")) or str(index),
        )


def _leader_worker_set(item: Item) -> Iterator[PodTemplate]:
    spec = mapping(item.raw.get("spec"))
    both = mapping(spec.get("leaderWorkerTemplate"))
    replicas, size = _number(spec.get("replicas")), _number(both.get("size"))
    # Without a leader's template the leader is made from the workers'.
    leader = "leaderTemplate" if both.get("leaderTemplate") else "workerTemplate"
    for role, field, count in (
        ("leader", leader, replicas),
        ("worker", "workerTemplate", replicas * (size - 1)),
    ):
        if count > 0:
            yield _made(item, both.get(field), f"spec.leaderWorkerTemplate.{field}", count, role)


def _kubeflow(item: Item) -> Iterator[PodTemplate]:
    spec = mapping(item.raw.get("spec"))
    for field in sorted(name for name in map(str, spec) if name.endswith("ReplicaSpecs")):
        for role, raw in mapping(spec[field]).items():
            replica = mapping(raw)
            path = f"spec.{field}.{role}.template"
            count = _number(replica.get("replicas"))
            yield _made(item, replica.get("template"), path, count, str(role).lower())


def _volcano(item: Item) -> Iterator[PodTemplate]:
    for index, task in enumerate(_objects(item, "tasks")):
        path = f"spec.tasks[{index}].template"
        count = _number(task.get("replicas"))
        yield _made(item, task.get("template"), path, count, text(task.get("name")) or str(index))


_Finder = Callable[[Item], Iterator[PodTemplate]]

_FINDERS: Final[dict[tuple[str, str], _Finder]] = {
    ("", "Pod"): _pod,
    ("", "ReplicationController"): _replicated,
    ("apps", "Deployment"): _replicated,
    ("apps", "ReplicaSet"): _replicated,
    ("apps", "StatefulSet"): _replicated,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("batch.volcano.sh", "Job"): _volcano,
}
_GROUPS: Final[dict[str, _Finder]] = {"kubeflow.org": _kubeflow}
"""Groups whose kinds are all alike: PyTorchJob, TFJob, MPIJob and so on."""
