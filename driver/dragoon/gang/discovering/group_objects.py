"""Numbers that stand in an object of another project, each read by one small function. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dragoon.errors import InvalidInputError
from dragoon.gang.discovering.answers import Ground, Numbers, Reader, count, shown
from dragoon.gang.records import PodRecord
from dragoon.kube.port import Resource

Spec = Mapping[str, Any]
ReadSpec = Callable[[Spec, str], Numbers]
"""The numbers of a group from its object's spec; the second is the spec's name in messages."""
_MOST: Final = 4096
"""Entries of a list in a spec: whoever writes more means something else."""


def object_name(group: str) -> str:
    """The object that a group stands in: of one with several groups (JobSet) the first part."""
    return group.partition("/")[0]


def of_object(resource: Resource, read: ReadSpec) -> Reader:
    """A reader of the spec of the object that the group stands in."""

    def reader(pod: PodRecord, group: str, ground: Ground) -> Numbers:
        name = object_name(group)
        what = f"{resource.kind} {name} ({resource.api_version})"
        refused = ground.objects.refused(resource)
        if refused:
            raise InvalidInputError(f"{what}: apiVersion: {refused}")
        found = ground.objects.find(resource, pod.namespace, name)
        if found is None:
            why = ground.objects.missing(resource) or "it is not there"
            return Numbers(waits=f"{what}: {why}")
        return read(_mapping(found.get("spec"), f"{what}: spec"), f"{what}: spec")

    return reader


def native(spec: Spec, where: str) -> Numbers:
    """scheduling.k8s.io/v1beta1 (KEP-4671). A group with the policy `basic` has no minimum."""
    policy = _mapping(spec.get("schedulingPolicy"), f"{where}.schedulingPolicy")
    if "gang" not in policy and "basic" in policy:
        return Numbers()
    place = f"{where}.schedulingPolicy.gang"
    return Numbers(count(_mapping(policy.get("gang"), place).get("minCount"), f"{place}.minCount"))


def min_member(spec: Spec, where: str) -> Numbers:
    """PodGroups of coscheduling and Koordinator."""
    return Numbers(count(spec.get("minMember"), f"{where}.minMember"))


def volcano(spec: Spec, where: str) -> Numbers:
    """scheduling.volcano.sh/v1beta1: at least minMember, and of each task its own minimum."""
    least = count(spec.get("minMember"), f"{where}.minMember")
    place = f"{where}.minTaskMember"
    tasks = _mapping(spec.get("minTaskMember") or {}, place)
    parts = {
        str(name): count(number, f"{place}.{name}") for name, number in tasks.items() if number != 0
    }
    return _in_parts(least, parts)


def kai(spec: Spec, where: str) -> Numbers:
    """scheduling.run.ai/v2alpha2: minMember, or a tree of subgroups whose leaves have it."""
    groups = list(_entries(spec.get("subGroups") or [], f"{where}.subGroups"))
    if not groups:
        return min_member(spec, where)
    parents = Counter(str(one.get("parent") or "") for one, _ in groups)
    for one, place in ((spec, where), *groups):
        wanted, there = one.get("minSubGroup"), parents[str(one.get("name") or "")]
        if wanted is not None and wanted != there:
            raise InvalidInputError(
                f"{place}.minSubGroup: found {shown(wanted)} of {there}, allowed is all: it is not "
                "known here which of them"
            )
    parts = {
        name: count(one.get("minMember"), f"{place}.minMember")
        for one, place in groups
        if not parents[name := str(one.get("name") or "")]
    }
    return _in_parts(0, parts)


def grove(spec: Spec, where: str) -> Numbers:
    """scheduler.grove.io/v1alpha1 PodGang: of each of its groups a minimum."""
    groups = list(_entries(spec.get("podgroups"), f"{where}.podgroups"))
    parts = {
        str(one.get("name")): count(one.get("minReplicas"), f"{place}.minReplicas")
        for one, place in groups
    }
    total = sum(len(_list(one.get("podReferences"), f"{p}.podReferences")) for one, p in groups)
    return _in_parts(0, parts, total)


def ray(spec: Spec, where: str) -> Numbers:
    """ray.io/v1 RayCluster: the head and its workers; with autoscaling the least of them.

    A worker is `numOfHosts` pods. Groups that are suspended have none.
    """
    scaled = spec.get("enableInTreeAutoscaling") is True
    parts = {"headgroup": 1}
    total = 1
    for one, place in _entries(spec.get("workerGroupSpecs") or [], f"{where}.workerGroupSpecs"):
        if one.get("suspend") is True:
            continue
        hosts = _number(one, "numOfHosts", place, default=1)
        least = _number(one, "minReplicas" if scaled else "replicas", place, default=0)
        most = _number(one, "maxReplicas", place, default=least) if scaled else least
        total += most * hosts
        if least * hosts:
            parts[str(one.get("groupName"))] = least * hosts
    return _in_parts(0, parts, total)


def job_set(spec: Spec, where: str, group: str) -> Numbers:
    """jobset.x-k8s.io/v1alpha2: all pods of the replicated Jobs of one group."""
    jobs = [
        (one, place)
        for one, place in _entries(spec.get("replicatedJobs"), f"{where}.replicatedJobs")
        if (one.get("groupName") or "default") == group
    ]
    if len(jobs) > 1:
        _start_together(spec, where, jobs)
    total = 0
    for one, place in jobs:
        inner = f"{place}.template.spec"
        job = _mapping(_mapping(one.get("template"), f"{place}.template").get("spec"), inner)
        parallelism = _number(job, "parallelism", inner, default=1)
        at_once = min(parallelism, _number(job, "completions", inner, default=parallelism))
        total += _number(one, "replicas", place, default=1) * at_once
    count(total, f"{where}.replicatedJobs of group {group}: pods")
    return Numbers(total, total)


def _start_together(spec: Spec, where: str, jobs: list[tuple[Spec, str]]) -> None:
    """Members that come only when others run cannot be placed together with them."""
    policy = spec.get("startupPolicy")
    if isinstance(policy, Mapping) and policy.get("startupPolicyOrder") == "InOrder":
        raise InvalidInputError(
            f"{where}.startupPolicy.startupPolicyOrder: found 'InOrder', allowed is AnyOrder for Jobs "
            "of one group: those that come only when others run cannot be placed together with them"
        )
    for one, place in jobs:
        if one.get("dependsOn"):
            raise InvalidInputError(
                f"{place}.dependsOn: found {shown(one['dependsOn'])}, allowed is none for Jobs of one "
                "group: those that come only when others run cannot be placed together with them"
            )


def _in_parts(least: int, parts: Mapping[str, int], total: int | None = None) -> Numbers:
    """Of a group with parts: the minimum is at least what its parts need."""
    needed = sum(parts.values())
    minimum = count(max(least, needed), "the minimum of all parts")
    return Numbers(minimum, total, dict(parts) if needed == minimum else {})


def _number(spec: Spec, name: str, where: str, *, default: int) -> int:
    """A number that may be nought or left out."""
    value = spec.get(name)
    if value is None:
        return default
    return 0 if value == 0 and value is not False else count(value, f"{where}.{name}")


def _entries(value: Any, where: str) -> Iterator[tuple[Spec, str]]:
    """The objects of a list, each with its own place for messages."""
    for index, one in enumerate(_list(value, where)):
        place = f"{where}[{index}]"
        yield _mapping(one, place), place


def _mapping(value: Any, where: str) -> Spec:
    if isinstance(value, Mapping):
        return value
    raise InvalidInputError(f"{where}: found {shown(value)}, allowed is an object")


def _list(value: Any, where: str) -> list[Any]:
    if isinstance(value, list) and len(value) <= _MOST:
        return value
    raise InvalidInputError(f"{where}: found {shown(value)}, allowed is a list")
