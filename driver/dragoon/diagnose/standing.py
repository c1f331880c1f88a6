"""How a cluster, or one node of it, stands: devices by form, our processes, gangs that wait. Pure.

What can be had is the allocator's view: a device that no claim has, that no taint keeps claims off,
and whose counters are left, is free.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.allocator.model import Device, Node
from dragoon.allocator.pools import Pool
from dragoon.allocator.usage import UNUSED, PoolUsage
from dragoon.api import gang
from dragoon.api.names import DRIVER_NAME, KEEPS_OFF
from dragoon.diagnose import installed
from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.codes import API_VERSION
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.pods import is_allocated
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import DragoonError
from dragoon.publish.attributes import FORMS

FREE: Final = "free"
USED: Final = "used"
TAINTED: Final = "tainted"
BLOCKED: Final = "other form"
"""The card is in use in another form."""
CLOSED: Final = "pool closed"
STATES: Final = (FREE, USED, TAINTED, BLOCKED, CLOSED)

_VERSION: Final = "app.kubernetes.io/version"


@dataclass(frozen=True, slots=True)
class DeviceStanding:
    """One device. state: of `STATES`; holders: claims; taints: as kubectl writes them."""

    name: str
    form: str
    state: str
    holders: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """One node with devices of ours. problem: why its pool cannot be used."""

    name: str
    devices: tuple[DeviceStanding, ...]
    problem: str = ""

    def counts(self) -> dict[str, Counter[str]]:
        """How many devices of each form are in each state."""
        found: dict[str, Counter[str]] = {}
        for one in self.devices:
            found.setdefault(one.form, Counter())[one.state] += 1
        return found


@dataclass(frozen=True, slots=True)
class ProcessStanding:
    """The pods of one of our processes. versions: of their labels."""

    component: str
    ready: int
    pods: int
    versions: tuple[str, ...]

    def __str__(self) -> str:
        told = f" ({', '.join(self.versions)})" if self.versions else ""
        return f"{self.component}: {self.ready} of {self.pods} ready{told}"


@dataclass(frozen=True, slots=True)
class GangStanding:
    """A gang that is not where it should be. phase: empty where no controller has seen it."""

    namespace: str
    name: str
    phase: str
    waiting_for: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that one screen shows. missing: what could not be looked at."""

    source: str
    version: str
    processes: tuple[ProcessStanding, ...]
    nodes: tuple[NodeStanding, ...]
    gangs: tuple[GangStanding, ...]
    running_gangs: int
    allocated: int
    pending: int
    missing: tuple[str, ...] = ()
    totals: Mapping[str, Counter[str]] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """For JSON and YAML."""
        return {
            "apiVersion": API_VERSION,
            "kind": "Status",
            "source": self.source,
            "kubernetes": self.version,
            "processes": [
                {
                    "component": one.component,
                    "ready": one.ready,
                    "pods": one.pods,
                    "versions": list(one.versions),
                }
                for one in self.processes
            ],
            "totals": {form: dict(count) for form, count in self.totals.items()},
            "nodes": [_node_data(one) for one in self.nodes],
            "gangs": {
                "running": self.running_gangs,
                "waiting": [
                    {
                        "namespace": one.namespace,
                        "name": one.name,
                        "phase": one.phase,
                        "waitingFor": one.waiting_for,
                    }
                    for one in self.gangs
                ],
            },
            "claims": {"allocated": self.allocated, "pending": self.pending},
            "missing": list(self.missing),
        }


def standing(snapshot: ClusterSnapshot, *, driver: str = DRIVER_NAME, node: str = "") -> Standing:
    """How a cluster stands. node: only this one, empty for all."""
    cluster = Cluster(snapshot)
    nodes = tuple(_nodes(cluster, driver, node))
    gangs = tuple(_gangs(snapshot.gangs))
    claims = [one for one in snapshot.claims if _is_ours(one, nodes, driver)]
    allocated = sum(map(is_allocated, claims))
    return Standing(
        source=snapshot.source,
        version=snapshot.version,
        processes=tuple(_processes(snapshot.pods)),
        nodes=nodes,
        gangs=tuple(one for one in gangs if one.phase not in gang.SETTLED),
        running_gangs=sum(one.phase == gang.Phase.RUNNING for one in gangs),
        allocated=allocated,
        pending=sum(not is_allocated(one) for one in snapshot.claims),
        missing=(*snapshot.missing, *cluster.problems),
        totals=_totals(nodes),
    )


def _is_ours(claim: Raw, nodes: Sequence[NodeStanding], driver: str) -> bool:
    pools = {one.name for one in nodes}
    results = mapping(mapping(mapping(claim.get("status")).get("allocation")).get("devices"))
    return any(
        one.get("driver") == driver and text(one.get("pool")).rpartition("/")[0] in pools
        for one in map(mapping, listed(results.get("results")))
    )


def _totals(nodes: Iterable[NodeStanding]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for node in nodes:
        for form, count in node.counts().items():
            found.setdefault(form, Counter()).update(count)
    return found


def _nodes(cluster: Cluster, driver: str, only: str) -> Iterator[NodeStanding]:
    forms = {
        (one.pool, one.name): str(FORMS.get(one.form, one.form or "?"))
        for one in installed.devices_of(cluster.snapshot, driver)
    }
    for raw in cluster.nodes:
        name, labels = identity(raw)[1], mapping(mapping(raw.get("metadata")).get("labels"))
        if only and name != only:
            continue
        try:
            pools = cluster.view.site(Node(name, labels)).pools
        except DragoonError as error:
            yield NodeStanding(name, (), error.message)
            continue
        ours = [one for one in pools if one.id.driver == driver]
        devices = [found for pool in ours for found in _devices(pool, cluster, forms)]
        problem = "; ".join(one.problem for one in ours if one.problem)
        if ours:
            yield NodeStanding(name, tuple(devices), problem)


def _devices(
    pool: Pool, cluster: Cluster, forms: Mapping[tuple[str, str], str]
) -> Iterator[DeviceStanding]:
    if pool.problem:
        for (of, name), form in forms.items():
            if of == pool.id.pool:
                yield DeviceStanding(name, form, CLOSED)
        return
    usage = cluster.view.usage.get(pool.id, UNUSED)
    for _, device in pool.devices():
        holds = (*usage.exclusive.get(device.name, ()), *usage.shared.get(device.name, ()))
        taints = tuple(str(one) for one in pool.taints(device))
        kept_off = any(one.effect in KEEPS_OFF for one in pool.taints(device))
        yield DeviceStanding(
            device.name,
            forms.get((pool.id.pool, device.name), "?"),
            _state(pool, device, usage, kept_off=kept_off),
            tuple(dict.fromkeys(hold.claim for hold in holds)),
            taints,
        )


def _state(pool: Pool, device: Device, usage: PoolUsage, *, kept_off: bool) -> str:
    if usage.is_allocated(device.name):
        return USED
    if kept_off:
        return TAINTED
    if pool.counters is not None:
        left = usage.slack(pool.counters).left
        if any(left.get(counter, 0) < amount for counter, amount in device.counters):
            return BLOCKED
    return FREE


def _processes(pods: Iterable[Raw]) -> Iterator[ProcessStanding]:
    by_component: dict[str, list[Raw]] = {}
    for pod in pods:
        labels = mapping(mapping(pod.get("metadata")).get("labels"))
        component = text(labels.get(installed.COMPONENT))
        if labels.get(installed.PART_OF) == installed.OURS and component in {
            installed.PLUGIN,
            installed.CONTROLLER,
        }:
            by_component.setdefault(component, []).append(pod)
    for component, found in sorted(by_component.items(), reverse=True):
        versions = {
            text(mapping(mapping(one.get("metadata")).get("labels")).get(_VERSION)) for one in found
        }
        ready = sum(map(installed.is_ready, found))
        yield ProcessStanding(component, ready, len(found), tuple(sorted(versions - {""})))


def _gangs(gangs: Iterable[Raw]) -> Iterator[GangStanding]:
    for raw in gangs:
        status = mapping(raw.get("status"))
        yield GangStanding(
            *identity(raw), text(status.get("phase")), text(status.get("waitingFor"))
        )


def _node_data(one: NodeStanding) -> dict[str, Any]:
    return {
        "name": one.name,
        "problem": one.problem,
        "devices": [
            {
                "name": device.name,
                "form": device.form,
                "state": device.state,
                "claims": list(device.holders),
                "taints": list(device.taints),
            }
            for device in one.devices
        ],
    }
