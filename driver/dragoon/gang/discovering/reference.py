"""docs/gang-sources.md, made from the table. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from dragoon.api import gang
from dragoon.gang.discovering.answers import Source
from dragoon.gang.discovering.marks import Mark
from dragoon.gang.discovering.table import JOB, SOURCES

_INTRODUCTION: Final = f"""\
# Whose groups are known

Every group starts with one thing of ours: the label `{gang.LABEL}` on its pods, which holds them
from their creation. A pod without it is not touched, whatever group of whatever project it is in. Put
the label into the pod template of the Job, JobSet, LeaderWorkerSet, RayCluster or what else makes the
pods; its value is a name for people, and one value may cover many groups.

What the group is and how many members have to run together is then read from where your job system
keeps it anyway. Each group of another project becomes one Gang (`spec.source` names it): two replicas of
a LeaderWorkerSet are two gangs, the Jobs of a JobSet are one.

- **None of these knows the pod**: the pods of one owner with the same label are a group
  ([gangs](gangs.md)).
- **The number is not said, or you want another one**: annotation `{gang.ANNOTATION_SIZE}` on the
  pods counts before everything here.
- **Two of them know the pod**: they have to agree on the number and on who is in the group. If they do
  not, the gang is `Invalid` and says who says what; annotation `{gang.ANNOTATION_SOURCE}` with a name from
  the first column chooses one.
- **None of them is to count**: annotation `{gang.ANNOTATION_SCOPE}: name`. Then all pods with the label
  are one gang, and only `{gang.ANNOTATION_SIZE}` says its size.
- **A group object is read from the API server** where that has the API, in the version of the table. An
  API that is not there is normal; one that comes later is found within half a minute. Until the object
  is there the gang is `Gathering` with the reason `GroupMissing`. Another version, or a field that is
  missing, makes this gang `Invalid`: the message has the field, what was found and what is allowed.

"""
_AFTER: Final = """\

Several marks with a semicolon between them count together.

*held too by*: that scheduler decides about the group as well, and goes on doing so: it binds the pods
once their claims are allocated and the gate is gone. A pod of such a group is ours only by the label.

*tried with*: `the real project` ran in our end-to-end tests; with `shapes of ours` pods and objects were
made by hand the way that project makes them.

Single points:

- **PodGroup** (native groups, feature gate `GenericWorkload`): without the label kube-scheduler keeps the
  group to itself. That is enough for groups of whole GPUs. Use the label for groups that ask for MIG
  placements, shares or alternatives, which kube-scheduler chooses pod by pod. With it the devices are
  ours and kube-scheduler still binds all or none.
- **Volcano, KAI, Grove, KubeRay**: where each part of the group has a minimum of its own, that many of
  each part are placed first, and the others one by one after them.
- **JobSet**: pods of an earlier `restart-attempt` are not placed any more; the members of a restarted
  set go where they were. Jobs that start one after the other (`InOrder`, `dependsOn`) cannot be one gang:
  give each such replicated Job a `groupName`, or their pods a size.
- **LeaderWorkerSet** with `startupPolicy: LeaderReady` makes workers only when the leader runs: say
  `dragoon.dev/gang-size: "1"`.
- **YuniKorn**: placeholder pods are never members and are not held. Pods that another pod starts (Spark's
  executors) name a task group without its size: say it with our annotation.
- **Kubeflow** (training-operator, such as PyTorchJob): its pods say who is who, but not how many there
  are: say it with our annotation. Kubeflow Trainer makes JobSets.
- **Argo Workflows, KServe** and others that make pods one by one: those pods are in no group. With the
  label and a size they are members like others.
"""


def reference() -> str:
    """The page."""
    head = (
        *("source", "group", "minimum", "total"),
        *("which member", "object", "held too by", "tried with"),
    )
    lines = [_row(head), "|" + "---|" * len(head)]
    lines += [_row(_cells(source)) for source in (*SOURCES, JOB)]
    return _INTRODUCTION + "\n".join(lines) + "\n" + _AFTER


def _cells(source: Source) -> Iterator[str]:
    yield f"**{source.name}**"
    yield _marks(source.group) or "the pods of one owner"
    yield source.minimum
    yield source.total
    yield _marks(source.slot) or "index in its owner"
    yield f"`{source.object.plural}.{source.object.api_version}`" if source.object else ""
    yield source.scheduler
    yield str(source.proof)


def _marks(marks: tuple[Mark, ...]) -> str:
    return "; ".join(map(str, marks))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell or "-" for cell in cells) + " |"
