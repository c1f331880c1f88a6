"""What the gang planner is asked and what it answers: frozen, raw objects only where copied.

`reading` makes the asks from raw pods and nodes; `planning.plan` answers. Amounts of node resources
are kube-scheduler's whole numbers: cpu in milli, everything else in its unit, rounded up per pod
(k8s.io/kubernetes 1.37 `pkg/scheduler/framework` Resource).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dragoon.allocator.gang.mix import KINDS, Mix
from dragoon.allocator.model import DeviceId, PoolId, Raw, Taint, Toleration
from dragoon.allocator.snapshot import Snapshot
from dragoon.api.gang import Topology

Amounts = Mapping[str, int]
"""Amounts by resource name, in kube-scheduler's whole numbers."""
STEPS: Final = 400_000
"""Devices tried, over all nodes, before the planner gives up."""
ANYWHERE: Final = Topology()


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Where the member was that this one replaces: tried first, with the same devices."""

    node: str
    devices: tuple[DeviceId, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PodAsk:
    """One member: what it demands of a node, and its claims.

    requests: of the whole pod, with overhead, sidecars and init containers; without `pods`.
    claims: raw ResourceClaims in the pod's order, each with a UID; one that several members name is
    shared. One that is allocated already is not planned again; it decides where the pod can be.
    affinity: the raw node selector that its node affinity requires. unmodelled: names of rules on
    the pod that the planner does not know. node: where the member is bound or pinned; it is not
    moved, and the facts of that node count it already. slot: whose place it takes.
    """

    namespace: str
    name: str
    uid: str
    requests: Amounts = field(default_factory=dict)
    claims: tuple[Raw, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Raw | None = None
    scheduler: str = "default-scheduler"
    priority: int = 0
    unmodelled: tuple[str, ...] = ()
    node: str = ""
    slot: Slot | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """A node and what is left of it.

    used: by all pods that are bound or nominated to it, but for members that are to be planned
    now. pods: how many those are. most_pods: how many it takes.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Amounts = field(default_factory=dict)
    most_pods: int = 110
    used: Amounts = field(default_factory=dict)
    pods: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PlacementSnapshot:
    """One moment of the cluster: devices and claims (`cluster`), and nodes.

    extended: extended resources that DeviceClasses stand for, and their class. mix: the pods that
    are to be expected, which decides between placements that are as good otherwise. priorities: of
    the pods that hold claims, by `namespace/name` of the claim; for advice only.
    """

    cluster: Snapshot
    nodes: tuple[NodeFacts, ...]
    extended: Mapping[str, str] = field(default_factory=dict)
    mix: Mix = KINDS
    priorities: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class GangAsk:
    """A gang to be planned: the members that are to be there, living ones only.

    members: in the order of their slots; the first `minimum` are placed all together or not at
    all, those after them one by one, up to `maximum` (0: no limit). Members with a node count.
    excluded: nodes not to be used. tolerations: of device taints that are for others than this
    gang (its own fences, gang-only nodes): they decide, and are written nowhere.
    """

    name: str
    members: tuple[PodAsk, ...]
    minimum: int
    maximum: int = 0
    topology: Topology = ANYWHERE
    excluded: frozenset[str] = frozenset()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """A member and its node.

    allocations: by the UID of the claim the raw `status.allocation`, without a timestamp, its node
    selector `metadata.name In [node]`. A claim that was allocated before is not among them, a
    shared claim stands with the first member that names it.
    """

    pod: PodAsk
    node: str
    allocations: Mapping[str, dict[str, Any]]


class Score(NamedTuple):
    """How good a plan is; less is better, the first counts most.

    spread: different values of each preferred level beyond the first, most wanted level first.
    nodes: that members are newly placed on. domains: NVLink domains and fabric cliques of their
    devices. broken: groups of free devices that were whole before, and are not after.
    """

    spread: tuple[int, ...]
    nodes: int
    domains: int
    broken: int


@dataclass(frozen=True, slots=True, eq=False)
class GangPlan:
    """Where every member goes.

    placements: of members that had no node. pools: that have their devices, sorted. optimistic:
    rules on the pods that were not looked at, each once. left_out: members beyond the minimum for
    which there is no room, by UID, in order. domain: the values of required levels.
    """

    placements: tuple[Placement, ...]
    pools: tuple[PoolId, ...]
    optimistic: tuple[str, ...]
    score: Score
    left_out: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    steps: int = 0


class Missing(NamedTuple):
    """Members of one shape that cannot be placed beside the others.

    members: their names. wanted: how many of the shape there are; fitting: how many of them fit,
    beside all of the shapes before. what: what the next one lacks, with numbers.
    """

    members: tuple[str, ...]
    wanted: int
    fitting: int
    what: str


class Change(NamedTuple):
    """The smallest change found that makes the gang fit; it was planned and verified with it.

    kind: `release`, `uncordon`, `capacity`, `size`, `topology` or `nodes`. text: what to do.
    claims: those that have to go, by `namespace/name`.
    """

    kind: str
    text: str
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class NoRoom:
    """No placement exists. never: not even with everything released that others hold.

    grows: that is so, and with more nodes like one there is it would fit. message: one sentence.
    fitting, wanted: members. explanation: line by line, the nearest node's funnel last.
    """

    message: str
    never: bool
    fitting: int
    wanted: int
    missing: tuple[Missing, ...] = ()
    change: Change | None = None
    explanation: tuple[str, ...] = ()
    grows: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SearchStopped:
    """The search gave up: whether there is a placement is not known."""

    steps: int
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """The ask itself is wrong: waiting does not help, somebody has to change it.

    instead: what to write, ready to paste; empty where there is nothing to write.
    """

    message: str
    instead: str = ""


Outcome = GangPlan | NoRoom | SearchStopped | Refused


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one plan may cost, in devices tried.

    advice: for the search for a change that helps. selectors: for their evaluations, in units of CEL
    as Kubernetes estimates them; a million take 0.35 s, and those of ours have 30 at most.
    """

    steps: int = STEPS
    advice: int = STEPS
    selectors: int = 30_000_000
