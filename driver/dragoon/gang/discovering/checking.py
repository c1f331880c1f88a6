"""What is wrong with a gang as it was written: the field, what was found and what is allowed.

A finding on the gang keeps it from being planned; one on a pod keeps that pod out of it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.api import gang
from dragoon.api.gang import GangObject
from dragoon.gang.discovering.answers import Ground
from dragoon.gang.discovering.grouping import answers_of, groups_of
from dragoon.gang.discovering.sizes import size_of
from dragoon.gang.records import PodRecord

_SHOWN: Final = 5
"""Pods that a message names."""
MISSING_SIZE: Final = "SizeMissing"
BAD_SIZE: Final = "BadSize"
TWO_SIZES: Final = "TwoSizes"
TWO_SCHEDULERS: Final = "TwoSchedulers"
UNKNOWN_PRIORITY: Final = "UnknownPriorityClass"
LABEL_CHANGED: Final = "LabelChanged"
BAD_NAME: Final = "BadName"
UNGATED: Final = "Ungated"
TWO_GROUPS: Final = "TwoGroups"
BAD_GROUP: Final = "BadGroup"
GROUP_MISSING: Final = "GroupMissing"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that a person has to change. reason: CamelCase. pods: whom it concerns.

    waits: it may come right by itself, so nobody is called.
    """

    reason: str
    message: str
    pods: tuple[PodRecord, ...] = ()
    waits: bool = False


def faults(
    gang_: GangObject,
    pods: Sequence[PodRecord],
    *,
    ground: Ground,
    priority_classes: Collection[str],
    relabelled: Sequence[PodRecord] = (),
    elsewhere: Sequence[PodRecord] = (),
) -> tuple[Fault, ...]:
    """What is wrong with the gang as a whole.

    pods: its pods, dead ones too. relabelled: pods that its plan names and whose label is another
    now. elsewhere: living pods that another project has in the group of a member, and that belong
    to another Gang. priority_classes: the names of all that there are.
    """
    living = [pod for pod in pods if pod.is_alive]
    found = [
        *_sizes(gang_, living, ground),
        *_groups(gang_, [pod for pod in living if pod not in relabelled], ground),
        *_schedulers(living),
        *_priorities(living, priority_classes),
    ]
    if relabelled:
        found.append(_moved(gang_, relabelled))
    if elsewhere:
        found.append(_torn(gang_, elsewhere))
    return tuple(found)


def ungated(pods: Iterable[PodRecord], ours: Collection[str]) -> Fault | None:
    """Pods with the label that came without the gate. ours: UIDs of pods that we ungated."""
    found = tuple(pod for pod in pods if pod.is_alive and not pod.gated and pod.uid not in ours)
    if not found:
        return None
    return Fault(
        UNGATED,
        f"{names(found)}: spec.schedulingGates: found no {gang.GATE}, which every pod with the "
        f"label {gang.LABEL} must have from its creation; these pods are never placed. Check the "
        "MutatingAdmissionPolicy gate.gangs.dragoon.dev, then delete the pods",
        found,
    )


def bad_name(pods: Sequence[PodRecord]) -> Fault:
    """The label value cannot be the name of a Gang."""
    return Fault(
        BAD_NAME,
        f"label {gang.LABEL}: found {pods[0].group!r}, allowed is a lower-case DNS subdomain of at "
        "most 63 characters: it names the Gang",
        tuple(pods),
    )


def bad_group(pod: PodRecord, wrong: str) -> Fault:
    """What a pod says of its group cannot be read: it belongs to no Gang."""
    return Fault(BAD_GROUP, f"{names([pod])}: {wrong}", (pod,))


def wanted_size(pods: Iterable[PodRecord], ground: Ground) -> int | None:
    """The size on which all living pods agree, None where they do not."""
    found = {size_of(pod, ground).number for pod in pods if pod.is_alive}
    return next(iter(found)) if len(found) == 1 else None


def names(pods: Sequence[PodRecord]) -> str:
    """Pods in a message: a few by name, the others as a number."""
    shown = ", ".join(str(pod) for pod in pods[:_SHOWN])
    more = f" and {len(pods) - _SHOWN} more" if len(pods) > _SHOWN else ""
    return f"pod{'s' if len(pods) > 1 else ''} {shown}{more}"


def _moved(gang_: GangObject, pods: Sequence[PodRecord]) -> Fault:
    where, allowed = f"label {gang.LABEL}", gang_.group
    said = [pod.group or "" for pod in pods]
    source = gang_.spec.source
    if source is not None and all(text == gang_.group for text in said):
        where, allowed = f"group of {source.name}", source.group
        said = [one.name for pod in pods for one in groups_of(pod)] or [""]
    return Fault(
        LABEL_CHANGED,
        f"{where} of {names(pods)}: found {_values(said)}, allowed is {allowed!r} for the life of the "
        "pod; delete the pod",
        tuple(pods),
    )


def _torn(gang_: GangObject, elsewhere: Sequence[PodRecord]) -> Fault:
    return Fault(
        TWO_GROUPS,
        f"{names(elsewhere)} of the same group: found in another gang, by label {gang.LABEL} "
        f"{_values(pod.group or '' for pod in elsewhere)} or by another group; allowed is one gang for "
        f"a group, here {gang_.group!r}; write annotation {gang.ANNOTATION_SOURCE} to choose whose "
        "groups count",
        tuple(elsewhere),
    )


def _groups(gang_: GangObject, pods: Sequence[PodRecord], ground: Ground) -> Iterator[Fault]:
    """Whatever says that a member is in a group has to say the same of all members.

    Not of a Gang that a user wrote: it is of the label alone.
    """
    if not gang_.made_by_us:
        return
    found: dict[str, dict[str, list[PodRecord]]] = {}
    for pod in pods:
        for answer in answers_of(pod, ground):
            found.setdefault(answer.source, {}).setdefault(answer.group, []).append(pod)
    for source, groups in found.items():
        if len(groups) > 1:
            told = "; ".join(
                f"{names(kept)} in {group!r}" for group, kept in sorted(groups.items())
            )
            yield Fault(
                TWO_GROUPS,
                f"{source}: found {told}; allowed is one group for all members; write annotation "
                f"{gang.ANNOTATION_SOURCE} to choose whose groups count",
                tuple(pod for kept in groups.values() for pod in kept),
            )


def _sizes(gang_: GangObject, pods: Sequence[PodRecord], ground: Ground) -> Iterator[Fault]:
    """A Gang that a user wrote has its size; what its pods say must be the same or nothing."""
    said: dict[int, list[PodRecord]] = {}
    for pod in pods:
        size = size_of(pod, ground)
        if size.number is not None:
            said.setdefault(size.number, []).append(pod)
        elif size.waits:
            # What is planned has its size for good.
            if gang_.made_by_us and gang_.status.plan is None:
                yield Fault(GROUP_MISSING, size.waits, (pod,), waits=True)
                return
        elif gang_.made_by_us or size.source:
            reason = BAD_SIZE if size.source else MISSING_SIZE
            yield Fault(reason, f"{names([pod])}: {size.wrong}", (pod,))
            return
    if not gang_.made_by_us:
        own = {pod.uid for pod in pods if gang.ANNOTATION_SIZE in pod.annotations}
        said = {
            number: kept
            for number, all_ in said.items()
            if (kept := [pod for pod in all_ if pod.uid in own])
        }
        said.setdefault(gang_.spec.size, [])
    if len(said) > 1:
        told = "; ".join(
            f"{names(found) if found else f'Gang {gang_}'} say{'' if len(found) > 1 else 's'} "
            f"{number}"
            for number, found in sorted(said.items())
        )
        yield Fault(TWO_SIZES, f"size: found {told}; allowed is one", tuple(pods))


def _schedulers(pods: Sequence[PodRecord]) -> Iterator[Fault]:
    found = {pod.scheduler: pod for pod in reversed(pods)}
    if len(found) > 1:
        told = ", ".join(f"{name!r} ({pod})" for name, pod in sorted(found.items()))
        yield Fault(
            TWO_SCHEDULERS,
            f"spec.schedulerName: found {told}; allowed is one for all members",
            tuple(found.values()),
        )


def _priorities(pods: Sequence[PodRecord], known: Collection[str]) -> Iterator[Fault]:
    """The API server refuses a pod with an unknown class; a pod that has its number needs none."""
    for pod in pods:
        spec = (pod.raw or {}).get("spec") or {}
        name = spec.get("priorityClassName")
        if name and spec.get("priority") is None and name not in known:
            yield Fault(
                UNKNOWN_PRIORITY,
                f"{names([pod])}: spec.priorityClassName: found {name!r}, allowed is the name of a "
                "PriorityClass",
                (pod,),
            )
            return


def _values(texts: Iterable[str]) -> str:
    return ", ".join(sorted({repr(text) for text in texts}))
