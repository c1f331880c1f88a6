"""Pods and objects as other projects make them, on the cluster of `bed`."""

from typing import Any

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import PODS, Object, Resource
from tests.scenario.gang.bed import SPACE, Bed


def serve(api: MemoryApi, resource: Resource, *, version: str = "") -> None:
    """As when the CustomResourceDefinition comes. version: another one than ours."""
    version = version or resource.version
    known = api.more_groups.get(resource.group, ())
    if resource.group == "scheduling.k8s.io":
        known = ("v1", *known)  # PriorityClass is always there.
    api.more_groups[resource.group] = tuple(dict.fromkeys((*known, version)))
    place = (resource.group, version)
    api.more_plurals[place] = api.more_plurals.get(place, frozenset()) | {resource.plural}


async def store(bed: Bed, resource: Resource, name: str, spec: Object) -> Object:
    """An object of another project."""
    return await bed.api.create(
        resource,
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": SPACE},
            "spec": spec,
        },
    )


async def member(
    bed: Bed,
    name: str,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: Object | None = None,
    template: str = "one",
    **spec: Any,
) -> Object:
    """A pod with a claim from a template. owner: its controller."""
    meta: Object = {"name": name, "namespace": SPACE, "labels": labels or {}}
    meta["annotations"] = annotations or {}
    if owner is not None:
        meta["ownerReferences"] = [{**owner, "controller": True}]
    return await bed.api.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {
                "containers": [{"name": "main", "image": "none"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
                **spec,
            },
        },
    )
