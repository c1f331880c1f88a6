"""What the allocator works on: frozen records of slices, claims and classes.

Records hold what decisions read and what a result copies; the raw objects are dropped. Equal parts
are shared between devices (`interning.py`), because a cluster has 100,000 of them. Made by
`slices.py` and `claims.py`; source of the shapes: resource.k8s.io/v1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dragoon.allocator.amounts import Capacities

Raw = Mapping[str, Any]


class PoolId(NamedTuple):
    """A pool is known by driver and name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """A device is known by driver, pool and name."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class Attribute(NamedTuple):
    """An attribute by its name as published. kind: `string`, `int`, `bool`, `version` or a list."""

    name: str
    kind: str
    value: Any


class Taint(NamedTuple):
    """A taint of a device. effect: None, NoSchedule or NoExecute; others have no meaning yet."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return (
            f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        )


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A DeviceTaintRule: a taint on the devices that it selects; None selects all of them."""

    name: str
    taint: Taint
    driver: str | None
    pool: str | None
    device: str | None

    @property
    def only_pool(self) -> PoolId | None:
        """The one pool that it can be about, None where there may be several."""
        if self.driver is None or self.pool is None:
            return None
        return PoolId(self.driver, self.pool)

    def covers(self, pool: PoolId) -> bool:
        """Whether it taints devices of the pool."""
        return self.driver in {None, pool.driver} and self.pool in {None, pool.pool}


@dataclass(frozen=True, slots=True, eq=False)
class NodeSelection:
    """On which nodes a slice or a device can be used; the first that is set counts."""

    node_name: str = ""
    all_nodes: bool = False
    selector: Raw | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What many devices have in common: all that selectors and requests can look at.

    multiple: allowMultipleAllocations. conditions: bindingConditions and
    bindingFailureConditions, which a result copies. unreadable: an attribute because of which
    every selector fails on the device, empty if there is none.
    """

    driver: str
    attributes: tuple[Attribute, ...] = ()
    capacity: Capacities = ()
    multiple: bool = False
    binds_to_node: bool = False
    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unreadable: str = ""


Counter = tuple[str, str]
"""A counter by the name of its set and its own."""
Counts = tuple[tuple[Counter, int], ...]
"""Amounts of counters in nano units."""


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One device of a slice. nodes: its own node selection, None where the slice has one."""

    name: str
    facts: Facts
    counters: Counts = ()
    taints: tuple[Taint, ...] = ()
    nodes: NodeSelection | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """One ResourceSlice. nodes: None where each device has its own selection.

    counters: what its shared counters hold; counter_sets: the names of the sets, one for each set.
    ignored: a device uses compatibility groups, for which kube-scheduler ignores the slice.
    """

    name: str
    pool: PoolId
    generation: int
    count: int
    nodes: NodeSelection | None
    devices: tuple[Device, ...]
    counter_sets: tuple[str, ...] = ()
    counters: Counts = ()
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a request; an empty key or effect matches all."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Whether it accepts the taint (k8s.io/dynamic-resource-allocation ToleratesTaint)."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in {"", "Equal"}:
            return self.value == taint.value
        return self.operator == "Exists"


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass: CEL selectors and raw configuration."""

    name: str
    selectors: tuple[str, ...]
    config: tuple[Raw, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Request:
    """A request, or one alternative of a request, for devices of a class.

    base: the request's own name. name: as a result has it, `base/alternative` for an alternative.
    count: devices wanted, 0 where all are wanted. capacity: amounts asked for, as texts.
    raw_tolerations: as a result copies them.
    """

    base: str
    name: str
    class_name: str
    count: int
    everything: bool = False
    admin: bool = False
    selectors: tuple[str, ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    raw_tolerations: tuple[Raw, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request of a claim: exactly one entry, or the alternatives of firstAvailable in order."""

    name: str
    alternatives: tuple[Request, ...]
    prioritized: bool = False


@dataclass(frozen=True, slots=True)
class Constraint:
    """The devices of these requests (empty: of all) have one value of the attribute.

    distinct: no two of them have the same value.
    """

    attribute: str
    requests: tuple[str, ...] = ()
    distinct: bool = False

    def covers(self, request: Request) -> bool:
        """Whether devices of this request, or of this alternative of it, are bound by it."""
        wanted = self.requests
        return not wanted or request.base in wanted or request.name in wanted


@dataclass(frozen=True, slots=True)
class Claim:
    """The wish of a ResourceClaim, and the raw configuration that its result gets."""

    namespace: str
    name: str
    uid: str
    requests: tuple[Wanted, ...]
    constraints: tuple[Constraint, ...] = ()
    config: tuple[Raw, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Node:
    """A node as node selectors see it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
