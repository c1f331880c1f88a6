"""The table of group sources: how other projects say that pods belong together.

One entry each; of several that know a pod the first names its group, and the others have to agree.
"""

from typing import Any, Final

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import InvalidInputError
from dragoon.gang.discovering import group_objects
from dragoon.gang.discovering.answers import Ground, Numbers, Proof, Source, count
from dragoon.gang.discovering.group_objects import of_object
from dragoon.gang.discovering.marks import Mark
from dragoon.gang.records import PodRecord
from dragoon.kube.port import (
    COSCHEDULING_GROUPS,
    JOB_SETS,
    KAI_GROUPS,
    KOORDINATOR_GROUPS,
    POD_GANGS,
    POD_GROUPS,
    RAY_CLUSTERS,
    VOLCANO_GROUPS,
)

INDEX: Final = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
"""Labels (on old pods annotations) of Jobs and StatefulSets: which of their pods a pod is.

It counts wherever a source has no mark of its own for that.
"""
_JOB_INDEX: Final = Mark((INDEX[0],), (INDEX[0],))

_KUEUE_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
_KUEUE_TOTAL: Final = Mark(annotation=("kueue.x-k8s.io/pod-group-total-count",))
_KOORDINATOR: Final = "gang.scheduling.koordinator.sh"
_KOORDINATOR_NAME: Final = Mark(annotation=(f"{_KOORDINATOR}/name",))
_KOORDINATOR_LEAST: Final = Mark(annotation=(f"{_KOORDINATOR}/min-available",))
_KOORDINATOR_TOTAL: Final = Mark(annotation=(f"{_KOORDINATOR}/total-number",))
_LWS: Final = "leaderworkerset.sigs.k8s.io"
_LWS_SIZE: Final = Mark(annotation=(f"{_LWS}/size",))
_JOB_SET: Final = "jobset.sigs.k8s.io"
_JOB_SET_NAME: Final = Mark((f"{_JOB_SET}/jobset-name",))
_JOB_SET_GROUP: Final = Mark((f"{_JOB_SET}/group-name",), default="default")
_YUNIKORN: Final = "yunikorn.apache.org"
_YUNIKORN_GROUP: Final = Mark(annotation=(f"{_YUNIKORN}/task-group-name",))
_YUNIKORN_GROUPS: Final = Mark(annotation=(f"{_YUNIKORN}/task-groups",))
_VOLCANO_TASK: Final = Mark(("volcano.sh/task-spec",), ("volcano.sh/task-spec",))
_GROVE_CLIQUE: Final = Mark(("grove.io/podclique",))
_KUBEFLOW: Final = "training.kubeflow.org"


def _said(mark: Mark, pod: PodRecord) -> int:
    """The number that a pod says at a mark. Raises InvalidInputError."""
    return count(mark.read(pod) or None, str(mark).replace("`", ""))


def _kueue(pod: PodRecord, _group: str, _ground: Ground) -> Numbers:
    total = _said(_KUEUE_TOTAL, pod)
    return Numbers(total, total)


def _lws(pod: PodRecord, _group: str, _ground: Ground) -> Numbers:
    size = _said(_LWS_SIZE, pod)
    return Numbers(size, size)


def _koordinator(pod: PodRecord, group: str, ground: Ground) -> Numbers:
    """Either all is in annotations, or a PodGroup has it."""
    if not _KOORDINATOR_NAME.read(pod):
        return of_object(KOORDINATOR_GROUPS, group_objects.min_member)(pod, group, ground)
    least = _said(_KOORDINATOR_LEAST, pod)
    total = _said(_KOORDINATOR_TOTAL, pod) if _KOORDINATOR_TOTAL.read(pod) else None
    return Numbers(least, total)


def _yunikorn(pod: PodRecord, _group: str, _ground: Ground) -> Numbers:
    """The task group of that name; pods that another pod starts name it without saying its size."""
    text, where = _YUNIKORN_GROUPS.read(pod), str(_YUNIKORN_GROUPS).replace("`", "")
    if not text:
        return Numbers()
    try:
        groups: Any = msgspec.json.decode(text)
    except UNDECODABLE as error:
        raise InvalidInputError(f"{where}: found no JSON ({error}), allowed is a list") from error
    name = _YUNIKORN_GROUP.read(pod)
    for one in groups if isinstance(groups, list) else ():
        if isinstance(one, dict) and one.get("name") == name:
            return Numbers(count(one.get("minMember"), f"{where}: minMember of {name}"))
    raise InvalidInputError(f"{where}: found {text[:40]!r}, allowed is a list with {name}")


def _job_set(pod: PodRecord, group: str, ground: Ground) -> Numbers:
    part = _JOB_SET_GROUP.read(pod)
    reader = of_object(JOB_SETS, lambda spec, where: group_objects.job_set(spec, where, part))
    return reader(pod, group, ground)


def _job(pod: PodRecord, _group: str, ground: Ground) -> Numbers:
    """The pods of a Job that run at the same time."""
    job = ground.job_of(pod)
    if job is None:
        return Numbers()
    at_once = job.parallelism
    if job.completions is not None:
        at_once = min(at_once, job.completions)
    return Numbers(count(at_once, "spec.parallelism of its Job"), job.completions)


def _unsaid(_pod: PodRecord, _group: str, _ground: Ground) -> Numbers:
    return Numbers()


SOURCES: Final[tuple[Source, ...]] = (
    Source(
        "PodGroup",
        group=(Mark(field="schedulingGroup.podGroupName"),),
        numbers=of_object(POD_GROUPS, group_objects.native),
        minimum="PodGroup `spec.schedulingPolicy.gang.minCount`",
        object=POD_GROUPS,
        scheduler="kube-scheduler",
        proof=Proof.REAL,
    ),
    Source(
        "Kueue",
        group=(Mark((_KUEUE_GROUP,), (_KUEUE_GROUP,)),),
        numbers=_kueue,
        minimum="as the total",
        total=str(_KUEUE_TOTAL),
        slot=(Mark(("kueue.x-k8s.io/pod-group-pod-index",)),),
    ),
    Source(
        "coscheduling",
        group=(Mark(("scheduling.x-k8s.io/pod-group",)),),
        numbers=of_object(COSCHEDULING_GROUPS, group_objects.min_member),
        minimum="PodGroup `spec.minMember`",
        object=COSCHEDULING_GROUPS,
        scheduler="scheduler-plugins",
    ),
    Source(
        "Volcano",
        group=(
            Mark(
                annotation=("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"),
            ),
        ),
        numbers=of_object(VOLCANO_GROUPS, group_objects.volcano),
        minimum="PodGroup `spec.minMember` and `spec.minTaskMember`",
        slot=(_VOLCANO_TASK, Mark(("volcano.sh/task-index",), ("volcano.sh/task-index",))),
        part=_VOLCANO_TASK,
        object=VOLCANO_GROUPS,
        scheduler="volcano",
    ),
    Source(
        "Koordinator",
        group=(Mark(("pod-group.scheduling.sigs.k8s.io",), _KOORDINATOR_NAME.annotation),),
        numbers=_koordinator,
        minimum=f"{_KOORDINATOR_LEAST}, or PodGroup `spec.minMember`",
        total=str(_KOORDINATOR_TOTAL),
        slot=(Mark(annotation=(f"{_KOORDINATOR}/network-topology-index",)),),
        object=KOORDINATOR_GROUPS,
        scheduler="koord-scheduler",
    ),
    Source(
        "KAI",
        group=(Mark(annotation=("pod-group-name",)),),
        numbers=of_object(KAI_GROUPS, group_objects.kai),
        minimum="PodGroup `spec.minMember`, or that of its subgroups",
        part=Mark(("kai.scheduler/subgroup-name",)),
        object=KAI_GROUPS,
        scheduler="kai-scheduler",
    ),
    Source(
        "YuniKorn",
        group=(
            Mark(
                (f"{_YUNIKORN}/app-id", "applicationId"),
                (f"{_YUNIKORN}/app-id",),
            ),
            _YUNIKORN_GROUP,
        ),
        numbers=_yunikorn,
        minimum=f"`minMember` of the task group in {_YUNIKORN_GROUPS}",
        stays_out=Mark(annotation=(f"{_YUNIKORN}/placeholder",)),
        scheduler="yunikorn",
    ),
    Source(
        "LeaderWorkerSet",
        group=(Mark((f"{_LWS}/name",)), Mark((f"{_LWS}/group-index",))),
        numbers=_lws,
        minimum=str(_LWS_SIZE),
        total="as the minimum",
        slot=(Mark((f"{_LWS}/worker-index",)),),
    ),
    Source(
        "JobSet",
        group=(_JOB_SET_NAME, _JOB_SET_GROUP),
        numbers=_job_set,
        minimum="JobSet `spec.replicatedJobs` of the group: replicas times pods at once",
        total="as the minimum",
        slot=(
            Mark((f"{_JOB_SET}/replicatedjob-name",)),
            Mark((f"{_JOB_SET}/job-index",)),
            _JOB_INDEX,
        ),
        attempt=Mark((f"{_JOB_SET}/restart-attempt",)),
        object=JOB_SETS,
    ),
    Source(
        "Grove",
        group=(Mark(("grove.io/podgang",)),),
        numbers=of_object(POD_GANGS, group_objects.grove),
        minimum="PodGang `spec.podgroups[].minReplicas`",
        total="PodGang `spec.podgroups[].podReferences`",
        slot=(_GROVE_CLIQUE, Mark(("grove.io/podclique-pod-index",))),
        part=_GROVE_CLIQUE,
        object=POD_GANGS,
    ),
    Source(
        "KubeRay",
        group=(Mark(("ray.io/cluster",)),),
        numbers=of_object(RAY_CLUSTERS, group_objects.ray),
        minimum="RayCluster: the head and `spec.workerGroupSpecs[].replicas`, with autoscaling "
        "`minReplicas`, times `numOfHosts`",
        total="with autoscaling `maxReplicas`",
        part=Mark(("ray.io/group",)),
        object=RAY_CLUSTERS,
    ),
    Source(
        "Kubeflow",
        group=(Mark((f"{_KUBEFLOW}/job-name",)),),
        numbers=_unsaid,
        minimum="only ours",
        slot=(Mark((f"{_KUBEFLOW}/replica-type",)), Mark((f"{_KUBEFLOW}/replica-index",))),
    ),
)
"""In the order in which they are asked."""

JOB: Final = Source(
    "Job",
    group=(),
    numbers=_job,
    minimum="Job `spec.parallelism`, at most `spec.completions`",
    total="Job `spec.completions`",
    slot=(_JOB_INDEX,),
    proof=Proof.REAL,
)
"""What counts where nobody else knows a pod: the group is the pods of one owner."""

OBJECTS: Final = {one.name: one.object for one in SOURCES if one.object is not None}
"""What has to be read from the API server, where it is there, by the name of the source."""
