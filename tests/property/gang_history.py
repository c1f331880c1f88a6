"""Everything that has happened to the pods and claims of the small cluster."""

from contextlib import aclosing

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, PODS, Object, Resource
from racecampaign.history import Event

_END = "the-end"


async def history(api: MemoryApi, namespace: str) -> list[Event]:
    """The events until now, in order. It writes an object of each kind, so that there is an end."""
    found: list[Event] = []
    for resource in (PODS, CLAIMS):
        await api.create(resource, _end(resource, namespace))
        async with aclosing(api.watch(resource, resource_version="1")) as told:
            async for one in told:
                if one.object["metadata"]["name"] == _END:
                    break
                found.append(Event.of(resource, one.kind, one.object))
    return sorted(found, key=lambda one: one.revision)


def _end(resource: Resource, namespace: str) -> Object:
    meta = {"name": _END, "namespace": namespace}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": meta,
        "spec": {},
    }
