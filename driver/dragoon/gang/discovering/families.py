"""The pods of one label value in one namespace, sorted into Gangs.

Identity: namespace, label value, UID of the owner. So a Job that is deleted
and made anew is another gang, though its pods carry the same label. A Gang without an owner (one
that a user wrote, or of bare pods, or of pods with the scope `name`) takes all pods that have no
Gang of their owner. Where another project says that pods are a group, that group counts instead of
the owner: the pods of one may have several owners, and one owner may have several groups.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.api import gang, limits
from dragoon.api.gang import GangObject, Owner, Source
from dragoon.gang.discovering.grouping import groups_of, stays_out
from dragoon.gang.records import JobRecord, PodRecord

_MOST_POD_OWNERS: Final = 256
"""Bare pods that a Gang names as its owners; with more only the controller deletes it."""
_NAME_LENGTH: Final = 63
_NOT_CLIMBED: Final = frozenset(("CronJob",))
"""Its Jobs are runs of their own, each with its own pods."""


@dataclass(frozen=True, slots=True)
class NewGang:
    """A Gang to be made. pods: its living pods."""

    namespace: str
    name: str
    group: str
    owner: Owner | None
    pods: tuple[PodRecord, ...]
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """The answer. members: pods by the name of their Gang, ended and deleting ones too.

    unnamed: pods whose label value cannot be the name of a Gang. unknown: pods whose owner has not
    been seen yet; they are looked at again when it is. unsorted: pods that say something about
    their group that cannot be read, with what is wrong.
    """

    members: Mapping[str, tuple[PodRecord, ...]] = field(default_factory=dict)
    missing: tuple[NewGang, ...] = ()
    unnamed: tuple[PodRecord, ...] = ()
    unknown: tuple[PodRecord, ...] = ()
    unsorted: tuple[tuple[PodRecord, str], ...] = ()


def sort(
    namespace: str,
    group: str,
    *,
    pods: Iterable[PodRecord],
    gangs: Sequence[GangObject],
    jobs: Mapping[str, JobRecord],
    taken: frozenset[str] = frozenset(),
) -> Family:
    """Sorts the pods with this label value.

    gangs: those of the group that are not being deleted. jobs: by UID. taken: names of Gangs in the
    namespace, of whatever group.
    """
    pods = sorted(
        (pod for pod in pods if not stays_out(pod)), key=lambda pod: (pod.created, pod.name)
    )
    if not limits.is_subdomain(group, _NAME_LENGTH):
        return Family(unnamed=tuple(pods))
    bound = {_identity(one.spec.source or one.spec.owner): one for one in gangs}
    open_gang = _open(group, gangs)
    members: dict[str, list[PodRecord]] = {one.name: [] for one in gangs}
    orphans: dict[_Identity, tuple[_Root, list[PodRecord]]] = {}
    unknown: list[PodRecord] = []
    unsorted: list[tuple[PodRecord, str]] = []
    for pod in pods:
        root = _root(pod, jobs)
        if isinstance(root, _Unseen):
            unknown.append(pod)
        elif isinstance(root, str):
            unsorted.append((pod, root))
        else:
            found = open_gang if root is None else bound.get(_identity(root), open_gang)
            if found is not None:
                members[found.name].append(pod)
            else:
                orphans.setdefault(_identity(root), (root, []))[1].append(pod)
    return Family(
        {name: tuple(found) for name, found in members.items()},
        tuple(_new_gangs(namespace, group, orphans.values(), {*taken, *members})),
        unknown=tuple(unknown),
        unsorted=tuple(unsorted),
    )


def _new_gangs(
    namespace: str,
    group: str,
    orphans: Iterable[tuple["_Root", Sequence[PodRecord]]],
    taken: set[str],
) -> Iterator[NewGang]:
    """The Gangs of pods that have none. taken: names; those of the new ones are added."""
    for root, pods in orphans:
        living = tuple(pod for pod in pods if pod.is_alive)
        if living:
            name = _name(group, root, taken)
            taken.add(name)
            owner = root if isinstance(root, Owner) else None
            source = root if isinstance(root, Source) else None
            yield NewGang(namespace, name, group, owner, living, source)


def belongs(pod: PodRecord, one: GangObject, jobs: Mapping[str, JobRecord]) -> bool:
    """Whether a pod is, by what it says, of the same group as a Gang that we made."""
    root = _root(pod, jobs)
    return pod.group == one.group and root == one.spec.source


class _Unseen:
    """The owner of a pod is a Job that no watch has shown yet."""


_UNSEEN: Final = _Unseen()
_Root = Owner | Source | None
"""What the pods of a Gang have in common beside their label."""
_Identity = tuple[str, str]


def _root(pod: PodRecord, jobs: Mapping[str, JobRecord]) -> "_Root | _Unseen | str":
    """The group of another project, else the owner; a text says why neither can be told."""
    groups = groups_of(pod)
    if not groups:
        return top_owner(pod, jobs)
    unread = next((one for one in groups if one.wrong), None)
    if unread is not None:
        return unread.wrong
    return Source(name=groups[0].source, group=groups[0].name)


def _identity(root: _Root) -> _Identity:
    if isinstance(root, Source):
        return (root.name, root.group)
    return ("", "" if root is None else root.uid)


def top_owner(pod: PodRecord, jobs: Mapping[str, JobRecord]) -> "Owner | _Unseen | None":
    """Who made the pod, and for Jobs who made the Job. None: nobody, or the pod asked for that."""
    owner = pod.owner
    if owner is None or pod.annotations.get(gang.ANNOTATION_SCOPE) == "name":
        return None
    if not _is_job(owner):
        return owner
    job = jobs.get(owner.uid)
    if job is None:
        return _UNSEEN
    above = job.owner
    return owner if above is None or above.kind in _NOT_CLIMBED else above


def _is_job(owner: Owner) -> bool:
    return owner.kind == "Job" and owner.api_version == "batch/v1"


def owner_references(
    gang_: GangObject | NewGang, pods: Iterable[PodRecord], jobs: Mapping[str, JobRecord]
) -> list[dict[str, Any]] | None:
    """The owners with which a Gang that we made goes: those of its pods, or bare pods.

    An empty list where there are too many of them. None where it is not known now: the Job of a pod
    has not been seen yet, or is gone while the pod still ends.
    """
    owner = gang_.owner if isinstance(gang_, NewGang) else gang_.spec.owner
    owners: dict[str, Owner] = {}
    if owner is not None:
        owners[owner.uid] = owner
    else:
        for pod in pods:
            made_by = pod.owner or Owner(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid)
            if _is_job(made_by):
                job = jobs.get(made_by.uid)
                if job is None:
                    return None
                if job.owner is not None and job.owner.kind not in _NOT_CLIMBED:
                    # What starts a whole group again makes new Jobs: the Gang outlives them.
                    made_by = job.owner
            owners[made_by.uid] = made_by
    if len(owners) > _MOST_POD_OWNERS:
        return []
    return [gang.wire(owners[uid]) for uid in sorted(owners)]


def body(new: NewGang, size: int, jobs: Mapping[str, JobRecord]) -> dict[str, Any]:
    """The Gang to create. size: how many members have to run together."""
    spec = gang.GangSpec(size=size, owner=new.owner, source=new.source)
    return {
        "apiVersion": gang.API_VERSION,
        "kind": gang.KIND,
        "metadata": {
            "name": new.name,
            "namespace": new.namespace,
            "labels": {gang.LABEL: new.group, gang.MADE_BY: gang.MADE_BY_CONTROLLER},
            "ownerReferences": owner_references(new, new.pods, jobs) or [],
        },
        "spec": gang.wire(spec),
    }


def _open(group: str, gangs: Iterable[GangObject]) -> GangObject | None:
    """The Gang of the label alone: the one with the very name, else the oldest."""
    found = [one for one in gangs if one.spec.owner is None and one.spec.source is None]
    found.sort(key=lambda one: (one.name != group, one.created, one.name))
    return found[0] if found else None


def _name(group: str, root: _Root, taken: set[str]) -> str:
    """The label's value where it is free, else one with the group or the owner in it."""
    if group not in taken:
        return group
    if isinstance(root, Source):
        telling = root.group.replace("/", "-").lower()
        for name in (telling, f"{group}-{telling}"):
            if name not in taken and limits.is_subdomain(name, _NAME_LENGTH):
                return name
    digest = hashlib.sha256("/".join(_identity(root)).encode()).hexdigest()[:8]
    return f"{group[: _NAME_LENGTH - 9].rstrip('-.')}-{digest}"
