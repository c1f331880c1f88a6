"""Raw pods and nodes to asks and facts.

Source of a pod's amounts: k8s.io/component-helpers 0.37 `resource/helpers.go` PodRequests, as
kube-scheduler uses it: sidecars run beside everything after them, init containers one by one,
pod-level resources replace sums, the overhead of the runtime comes on top.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dragoon import quantity
from dragoon.allocator.fields import items, required
from dragoon.allocator.gang.model import Amounts, NodeFacts, PodAsk, Slot
from dragoon.allocator.model import Raw, Taint, Toleration
from dragoon.api.names import ENDED
from dragoon.errors import InvalidInputError

_NANOS_PER_MILLI: Final = 10**6
_NANOS_PER_ONE: Final = 10**9
_POD_LEVEL: Final = ("cpu", "memory")
"""Resources that a pod can ask for as a whole; huge pages besides."""
_DEFAULT_PODS: Final = 110
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
"""Before the name of a DeviceClass: the extended resource that stands for it without being
named."""

_TO_COME: Final = "9999"
"""After every time (RFC 3339)."""

Sums = dict[str, int]
"""Amounts in nano units, before they are rounded up."""


def pod_ask(
    pod: Raw, claims: Sequence[Raw] = (), *, node: str = "", slot: Slot | None = None
) -> PodAsk:
    """A member, from the raw pod and its raw claims in the pod's order.

    node: where it is bound or pinned, empty for one that is to be placed. Raises InvalidInputError
    for a quantity that is none, naming pod and resource.
    """
    metadata = required(pod, "metadata", "Pod")
    spec: Raw = pod.get("spec") or {}
    return PodAsk(
        namespace=metadata.get("namespace") or "",
        name=metadata.get("name") or "",
        uid=metadata.get("uid") or "",
        requests=pod_amounts(pod),
        claims=tuple(claims),
        tolerations=tuple(map(_toleration, items(spec, "tolerations"))),
        node_selector=spec.get("nodeSelector") or {},
        affinity=_required_affinity(spec),
        scheduler=spec.get("schedulerName") or "default-scheduler",
        priority=spec.get("priority") or 0,
        unmodelled=tuple(unmodelled(spec)),
        node=node or spec.get("nodeName") or "",
        slot=slot,
    )


def node_facts(node: Raw, pods: Iterable[Raw] = ()) -> NodeFacts:
    """A node, and the pods that are bound or nominated to it; those that have ended do not count.

    Raises InvalidInputError for a quantity that is none, naming the object and the resource.
    """
    name = required(node, "metadata.name", "Node")
    spec, status = node.get("spec") or {}, node.get("status") or {}
    used: dict[str, int] = {}
    count = 0
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in ENDED:
            continue
        count += 1
        for resource, amount in pod_amounts(pod).items():
            used[resource] = used.get(resource, 0) + amount
    room = _whole(_parsed(status.get("allocatable") or {}, f"Node {name}: allocatable"))
    most = room.pop("pods", _DEFAULT_PODS)
    return NodeFacts(
        name=name,
        labels=node["metadata"].get("labels") or {},
        taints=tuple(
            Taint(one.get("key") or "", one.get("value") or "", one.get("effect") or "")
            for one in items(spec, "taints")
        ),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=room,
        most_pods=most,
        used=used,
        pods=count,
    )


def extended_resources(classes: Iterable[Raw]) -> dict[str, str]:
    """Extended resources that DeviceClasses stand for, and the class of each (KEP-5004).

    Of several classes the newest counts, of those the first by name. One of a file is still to be
    created.
    """
    named = {required(one, "metadata.name", "DeviceClass"): one for one in classes}
    found = {f"{IMPLICIT}{name}": name for name in named}
    oldest_first = sorted(sorted(named, reverse=True), key=lambda name: _created(named[name]))
    for name in oldest_first:
        explicit = (named[name].get("spec") or {}).get("extendedResourceName")
        if explicit:
            found[explicit] = name
    return found


def _created(one: Raw) -> str:
    return str(one["metadata"].get("creationTimestamp") or _TO_COME)


def pod_amounts(pod: Raw) -> Amounts:
    """What a pod takes of a node, in kube-scheduler's whole numbers."""
    spec: Raw = pod.get("spec") or {}
    owner = f"Pod {(pod.get('metadata') or {}).get('name') or ''}"
    status: Raw = pod.get("status") or {}
    running = _by_name(items(status, "containerStatuses"))
    started = _by_name(items(status, "initContainerStatuses"))
    total: Sums = {}
    for container in items(spec, "containers"):
        _add(total, _container(container, running, owner))
    sidecars: Sums = {}
    most: Sums = {}
    for container in items(spec, "initContainers"):
        its = _container(container, started, owner)
        if container.get("restartPolicy") == "Always":
            _add(total, its)
            _add(sidecars, its)
            its = dict(sidecars)
        else:
            _add(its, sidecars)
        _raise_to(most, its)
    _raise_to(total, most)
    for resource, amount in _requests(spec.get("resources") or {}, owner).items():
        if resource in _POD_LEVEL or resource.startswith("hugepages-"):
            total[resource] = amount
    _add(total, _parsed(spec.get("overhead") or {}, f"{owner}: overhead"))
    return _whole(total)


def unmodelled(spec: Raw) -> Iterable[str]:
    """The names of rules in a pod that can keep it from a node and are not looked at."""
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        if items(affinity.get(name) or {}, "requiredDuringSchedulingIgnoredDuringExecution"):
            yield name
    if any(
        one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        for one in items(spec, "topologySpreadConstraints")
    ):
        yield "topologySpreadConstraints"
    containers = (*items(spec, "containers"), *items(spec, "initContainers"))
    if any(port.get("hostPort") for one in containers for port in items(one, "ports")):
        yield "hostPorts"
    if any(
        one.get(kind)
        for one in items(spec, "volumes")
        for kind in ("persistentVolumeClaim", "ephemeral", "csi")
    ):
        yield "volumes"


def _required_affinity(spec: Raw) -> Raw | None:
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    found: Raw | None = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return found


def _toleration(raw: Raw) -> Toleration:
    return Toleration(
        raw.get("key") or "",
        raw.get("operator") or "",
        raw.get("value") or "",
        raw.get("effect") or "",
    )


def _by_name(statuses: Iterable[Raw]) -> dict[str, Raw]:
    return {one.get("name") or "": one for one in statuses}


def _container(container: Raw, statuses: Mapping[str, Raw], owner: str) -> Sums:
    """What a container asks for; while it is resized the larger of wish and reality counts."""
    asked = _requests(container.get("resources") or {}, owner)
    status = statuses.get(container.get("name") or "")
    if status is not None:
        _raise_to(asked, _parsed(status.get("allocatedResources") or {}, owner))
        real = (status.get("resources") or {}).get("requests") or {}
        _raise_to(asked, _parsed(real, owner))
    return asked


def _requests(resources: Raw, owner: str) -> Sums:
    """Requests; a limit without a request is one, as the API server would have it."""
    return _parsed({**(resources.get("limits") or {}), **(resources.get("requests") or {})}, owner)


def _parsed(amounts: Mapping[str, Any], owner: str) -> Sums:
    found: Sums = {}
    for name, text in amounts.items():
        try:
            found[name] = quantity.nanos(quantity.parse(str(text)))
        except InvalidInputError as error:
            raise InvalidInputError(f"{owner}: {name}: {error.message}") from error
    return found


def _add(total: Sums, more: Sums) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Sums, least: Sums) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)


def _whole(amounts: Sums) -> dict[str, int]:
    """Rounded up: cpu to milli, everything else to ones."""
    return {
        name: -(-amount // (_NANOS_PER_MILLI if name == "cpu" else _NANOS_PER_ONE))
        for name, amount in amounts.items()
    }
