"""The claim of a pod that asks for devices by number, as extended resources (KEP-5004).

kube-scheduler makes it while it schedules the pod; before that it is made up here by the same rules
(k8s.io/kubernetes 1.37, scheduler plugin `dynamicresources`): a request for each container and
resource, and init containers that end use the devices of the containers after them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dragoon import quantity
from dragoon.allocator.gang import extended_resources
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import InvalidInputError


def counted_claim(pod: Raw, snapshot: ClusterSnapshot) -> Raw | str | None:
    """The claim, what is wrong with it, or None for a pod that counts no devices of a class."""
    namespace, name = identity(pod)
    status = mapping(mapping(pod.get("status")).get("extendedResourceClaimStatus"))
    made = text(status.get("resourceClaimName"))
    if made:
        found = snapshot.find("ResourceClaim", namespace, made)
        return f"claim {namespace}/{made} is not there" if found is None else found
    requests = list(_requests(pod, _classes(snapshot)))
    if not requests:
        return None
    claim = f"{name}-extended-resources"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": namespace, "name": claim, "uid": f"new:{claim}"},
        "spec": {"devices": {"requests": requests}},
    }


def _classes(snapshot: ClusterSnapshot) -> dict[str, str]:
    """Classes by the resource that they stand for, without those that a device plugin offers."""
    offered = {
        resource
        for node in snapshot.nodes
        for resource, amount in mapping(mapping(node.get("status")).get("allocatable")).items()
        if _number(amount)
    }
    found = extended_resources(one for one in snapshot.classes if identity(one)[1])
    return {resource: name for resource, name in found.items() if resource not in offered}


def _requests(pod: Raw, classes: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    spec = mapping(pod.get("spec"))
    first = list(map(mapping, listed(spec.get("initContainers"))))
    containers = [_asked(one) for one in (*first, *map(mapping, listed(spec.get("containers"))))]
    ending = {at for at, one in enumerate(first) if one.get("restartPolicy") != "Always"}
    for resource in sorted({name for one in containers for name in one} & classes.keys()):
        counts = [one.get(resource, 0) for one in containers]
        lasting = [0 if at in ending else count for at, count in enumerate(counts)]
        extra = {at: counts[at] - sum(lasting[at:]) for at in ending}
        most = max(sorted(extra), key=extra.__getitem__, default=None)
        for at, container in enumerate(containers):
            count = max(0, extra[at]) if at == most else lasting[at]
            if count:
                yield {
                    "name": f"container-{at}-request-{sorted(container).index(resource)}",
                    "exactly": {"deviceClassName": classes[resource], "count": count},
                }


def _asked(container: Raw) -> dict[str, int]:
    """What a container asks for; a limit without a request is one."""
    resources = mapping(container.get("resources"))
    amounts = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
    return {name: _number(amount) for name, amount in amounts.items()}


def _number(amount: Any) -> int:
    """A whole number of devices; what is none cannot be asked for."""
    try:
        return quantity.parse(str(amount)).as_int64() or 0
    except InvalidInputError:
        return 0
