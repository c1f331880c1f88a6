"""Numbers that stand in an object of another project, each read by one small function. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from dragoon.errors import InvalidInputError
from dragoon.gang.discovering.answers import Ground, Numbers, Reader, count
from dragoon.gang.records import PodRecord
from dragoon.kube.port import Resource

Spec = Mapping[str, Any]
ReadSpec = Callable[[Spec, str], Numbers]
"""The numbers of a group from its object's spec; the second is the spec's name in messages."""


def of_object(resource: Resource, read: ReadSpec) -> Reader:
    """A reader of the spec of the object that the group's key names."""

    def reader(pod: PodRecord, group: str, ground: Ground) -> Numbers:
        what = f"{resource.kind} {group} ({resource.api_version})"
        refused = ground.objects.refused(resource)
        if refused:
            raise InvalidInputError(f"{what}: apiVersion: {refused}")
        found = ground.objects.find(resource, pod.namespace, group)
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


def _mapping(value: Any, where: str) -> Spec:
    if isinstance(value, Mapping):
        return value
    raise InvalidInputError(f"{where}: found {_shown(value)}, allowed is an object")


def _shown(value: Any) -> str:
    return "none" if value is None else repr(value)[:40]
