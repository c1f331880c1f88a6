"""What the allocator works on: frozen views of slices, claims and classes.

Views hold what the search reads, and the raw parts that a result copies. Made by `slices.py` and
`claims.py`; source of the shapes: resource.k8s.io/v1, dra-api.md A.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoon.cel import DeviceView

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class PoolId:
    """A pool is known by driver and name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


@dataclass(frozen=True, slots=True, order=True)
class DeviceId:
    """A device is known by driver, pool and name."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a device. effect: None, NoSchedule or NoExecute; others have no meaning yet."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return (
            f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        )


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """On which nodes a slice or a device can be used; the first that is set counts."""

    node_name: str = ""
    all_nodes: bool = False
    selector: Raw | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One device of a slice.

    attributes: by the name as published, type and value, as matchAttribute compares them.
    counters: (counter set, names of counters) it consumes. conditions: bindingConditions and
    bindingFailureConditions, which a result copies. unsupported: the field because of which it is
    never allocated, empty if there is none. nodes: its own node selection, where the slice says so.
    """

    id: DeviceId
    view: DeviceView
    attributes: Mapping[str, tuple[str, Any]]
    taints: tuple[Taint, ...] = ()
    counters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unsupported: str = ""
    nodes: NodeSelection | None = None
    binds_to_node: bool = False
    conditions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_compatibility_groups: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """One ResourceSlice. nodes: None where each device has its own selection.

    counter_sets: (name, names of counters) of its shared counters.
    """

    name: str
    pool: PoolId
    generation: int
    count: int
    nodes: NodeSelection | None
    devices: tuple[Device, ...]
    counter_sets: tuple[tuple[str, tuple[str, ...]], ...] = ()


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
    """A request for a number of devices. raw_tolerations: as a result copies them."""

    name: str
    class_name: str
    count: int
    selectors: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    raw_tolerations: tuple[Raw, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """All devices of these requests (empty: of all) have the same value of one attribute."""

    attribute: str
    requests: tuple[str, ...] = ()

    def covers(self, request: str) -> bool:
        """Whether devices of this request are bound by it."""
        return not self.requests or request in self.requests


@dataclass(frozen=True, slots=True)
class Claim:
    """The wish of a ResourceClaim, and the raw configuration that its result gets."""

    namespace: str
    name: str
    uid: str
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()
    config: tuple[Raw, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Node:
    """A node as node selectors see it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
