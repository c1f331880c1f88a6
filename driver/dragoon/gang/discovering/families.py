"""The pods of one label value in one namespace, sorted into Gangs.

Identity (DESIGN section 7.1): namespace, label value, UID of the owner. So a Job that is deleted
and made anew is another gang, though its pods carry the same label. A Gang without an owner (one
that a user wrote, or of bare pods, or of pods with the scope `name`) takes all pods that have no
Gang of their owner.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.api import gang, limits
from dragoon.api.gang import GangObject, Owner
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


@dataclass(frozen=True, slots=True)
class Family:
    """The answer. members: pods by the name of their Gang, ended and deleting ones too.

    unnamed: pods whose label value cannot be the name of a Gang. unknown: pods whose owner has not
    been seen yet; they are looked at again when it is.
    """

    members: Mapping[str, tuple[PodRecord, ...]] = field(default_factory=dict)
    missing: tuple[NewGang, ...] = ()
    unnamed: tuple[PodRecord, ...] = ()
    unknown: tuple[PodRecord, ...] = ()


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

    gangs: those of the group that are not being deleted. jobs: by UID. taken: names of Gangs in
    the namespace, of whatever group.
    """
    pods = sorted(pods, key=lambda pod: (pod.created, pod.name))
    if not limits.is_subdomain(group, _NAME_LENGTH):
        return Family(unnamed=tuple(pods))
    owned = {one.spec.owner.uid: one for one in gangs if one.spec.owner is not None}
    open_gang = _open(group, gangs)
    members: dict[str, list[PodRecord]] = {one.name: [] for one in gangs}
    orphans: dict[str, list[PodRecord]] = {}
    owners: dict[str, Owner | None] = {}
    unknown: list[PodRecord] = []
    for pod in pods:
        owner = top_owner(pod, jobs)
        if isinstance(owner, _Unseen):
            unknown.append(pod)
            continue
        uid = "" if owner is None else owner.uid
        found = owned.get(uid, open_gang)
        if found is not None:
            members[found.name].append(pod)
        else:
            orphans.setdefault(uid, []).append(pod)
            owners[uid] = owner
    names = set(taken) | set(members)
    missing: list[NewGang] = []
    for uid, group_pods in orphans.items():
        living = tuple(pod for pod in group_pods if pod.is_alive)
        if living:
            name = _name(group, uid, names)
            names.add(name)
            missing.append(NewGang(namespace, name, group, owners[uid], living))
    return Family(
        {name: tuple(found) for name, found in members.items()},
        tuple(missing),
        unknown=tuple(unknown),
    )


class _Unseen:
    """The owner of a pod is a Job that no watch has shown yet."""


_UNSEEN: Final = _Unseen()


def top_owner(pod: PodRecord, jobs: Mapping[str, JobRecord]) -> "Owner | _Unseen | None":
    """Who made the pod, and for Jobs who made the Job. None: nobody, or the pod asked for that."""
    owner = pod.owner
    if owner is None or pod.annotations.get(gang.ANNOTATION_SCOPE) == "name":
        return None
    if owner.kind != "Job" or owner.api_version != "batch/v1":
        return owner
    job = jobs.get(owner.uid)
    if job is None:
        return _UNSEEN
    above = job.owner
    return owner if above is None or above.kind in _NOT_CLIMBED else above


def owner_references(
    gang_: GangObject | NewGang, pods: Iterable[PodRecord]
) -> list[dict[str, Any]]:
    """The owners with which a Gang that we made goes: the owner of its pods, or bare pods.

    None at all where there are too many of them.
    """
    owner = gang_.owner if isinstance(gang_, NewGang) else gang_.spec.owner
    owners: dict[str, Owner] = {}
    if owner is not None:
        owners[owner.uid] = owner
    else:
        for pod in pods:
            made_by = pod.owner or Owner(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid)
            owners[made_by.uid] = made_by
    if len(owners) > _MOST_POD_OWNERS:
        return []
    return [gang.wire(owners[uid]) for uid in sorted(owners)]


def body(new: NewGang, size: int) -> dict[str, Any]:
    """The Gang to create. size: how many members have to run together."""
    spec = gang.GangSpec(size=size, owner=new.owner)
    return {
        "apiVersion": gang.API_VERSION,
        "kind": gang.KIND,
        "metadata": {
            "name": new.name,
            "namespace": new.namespace,
            "labels": {gang.LABEL: new.group, gang.MADE_BY: gang.MADE_BY_CONTROLLER},
            "ownerReferences": owner_references(new, new.pods),
        },
        "spec": gang.wire(spec),
    }


def _open(group: str, gangs: Iterable[GangObject]) -> GangObject | None:
    """The Gang without an owner: the one with the very name, else the oldest."""
    found = [one for one in gangs if one.spec.owner is None]
    found.sort(key=lambda one: (one.name != group, one.created, one.name))
    return found[0] if found else None


def _name(group: str, owner: str, taken: set[str]) -> str:
    """The group's own name where it is free, else one with the owner in it."""
    if group not in taken:
        return group
    digest = hashlib.sha256(owner.encode()).hexdigest()[:8]
    return f"{group[: _NAME_LENGTH - 9].rstrip('-.')}-{digest}"
