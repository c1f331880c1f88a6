"""What the protocol looks at: a frozen view of one gang.

The loop makes a GangView from its informers (`viewing.view_of` does the work), calls
`deciding.decide`, lets `executing.Executor` carry out what comes back and looks again. Nothing but
the wait and the answer of the planner is kept between two looks, and both can be lost: a new
process starts them again. All else is in the API.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from dragoon.allocator import Snapshot
from dragoon.allocator.model import PoolId
from dragoon.api.gang import Owner
from dragoon.api.gang_plan import Plan, PlannedClaim, PlannedMember, PlannedPool
from dragoon.api.names import ENDED

Raw = Mapping[str, Any]


class Ref(NamedTuple):
    """An object as a write names it. version: its resourceVersion, with which the write agrees.

    namespace is empty where the kind has none.
    """

    namespace: str
    name: str
    uid: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of the gang.

    gated: our gate is there; other_gates: those of others. node: where it is bound, empty
    before. slot: which member it is (completion index, ordinal), empty where members are alike.
    claims: names of its claims, from its status; complete: all that its spec names exist.
    unschedulable: what kube-scheduler says about it, empty where it says nothing;
    unschedulable_since: since when. affinity: raw spec.affinity.
    """

    ref: Ref
    gated: bool
    other_gates: tuple[str, ...] = ()
    node: str = ""
    nominated: str = ""
    phase: str = "Pending"
    deleting: bool = False
    slot: str = ""
    owner: Owner | None = None
    claims: tuple[str, ...] = ()
    complete: bool = True
    unschedulable: str = ""
    unschedulable_since: datetime | None = None
    affinity: Raw | None = field(default=None, compare=False)

    @property
    def has_ended(self) -> bool:
        return self.phase in ENDED

    @property
    def is_alive(self) -> bool:
        """Whether it counts as a member."""
        return not self.deleting and not self.has_ended


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """A claim that a member names or that the journal does.

    reserved: UIDs of its consumers. made_for: UID of the pod that it was made for and goes with,
    empty for one made by a user. protected: it has the finalizer of the resource claim controller.
    """

    ref: Ref
    allocation: Raw | None = None
    reserved: tuple[str, ...] = ()
    deleting: bool = False
    protected: bool = True
    made_for: str = ""


class Kind(enum.StrEnum):
    """What a rule of ours is for."""

    FENCE = "fence"
    """Keeps kube-scheduler off the pool of a gang, for the life of the gang."""
    DAMAGE = "damage"
    """Keeps everybody off a pool with a device that was given twice, until all holders are gone."""


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """A DeviceTaintRule of ours. gang: UID of the gang, empty for damage.

    claims: of a fence, the claims made by users that its gang allocates, so that they can be
    cleared when the gang is gone; of damage, those that held what was given twice.
    """

    ref: Ref
    kind: Kind
    driver: str
    pool: str
    gang: str = ""
    claims: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class Backlog:
    """What kube-scheduler may have in flight.

    pending: UIDs of unallocated claims of pods that it may schedule now. free: devices of the
    planned drivers that nobody holds, in the cluster.
    """

    pending: frozenset[str] = frozenset()
    free: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """The wait of this process for the rules of a plan: kept in memory, never in the API.

    fenced: of the plan: when its rules stood. started, until: monotonic seconds. pending: the
    claims that were pending then.
    """

    fenced: str
    started: float
    until: float
    pending: frozenset[str]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The planner's answer to RequestPlan.

    asked: UIDs of the pods that were asked for. claims: only those to be written: what was
    allocated before is not planned. refusal: why there is no plan, empty where there is one.
    The loop forgets it after the next Journal, and a refusal when there may be room.
    """

    asked: frozenset[str]
    members: tuple[PlannedMember, ...] = ()
    claims: tuple[PlannedClaim, ...] = ()
    pools: tuple[PlannedPool, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class GangView:
    """One gang, and what concerns it, at one moment.

    now: the wall clock (UTC, aware), for what is written; tick: a monotonic clock in seconds, for
    waiting. gang: with its resourceVersion. deleting: the Gang is going. minimum: members that run
    together; maximum: 0 without a limit. claims: by (namespace, name), those of members, of the
    plan and of all who hold devices in its pools. planned: the plan's allocations, unpacked. rules:
    those of this gang, and of damage in its pools. snapshot: pools and what is held of them.
    listed: this view was made from a list of all claims that began after the last write of this
    gang. misfits: planned pods that do not fit on their planned node any more, and why, by UID
    (absent: fits). closed: successors whom the node of the one that went does not take any more, by
    UID. nodes: names of all nodes. wait, proposal: what this process remembers. reserved: pools
    that are kept for the gang while it waits. suspended: the owner Job's spec.suspend. owner: the
    Job to suspend, with which all members go; None where the members have another owner or none.
    While the plan says that a Job is suspended, that Job, whether it has pods or not; None where it
    is gone.
    """

    now: datetime
    tick: float
    gang: Ref
    minimum: int
    members: tuple[Member, ...]
    claims: Mapping[tuple[str, str], ClaimFacts]
    rules: tuple[RuleFacts, ...]
    snapshot: Snapshot
    nodes: frozenset[str]
    backlog: Backlog = Backlog()
    reserved: tuple[PoolId, ...] = ()
    maximum: int = 0
    deleting: bool = False
    plan: Plan | None = None
    planned: tuple[PlannedClaim, ...] = ()
    misfits: Mapping[str, str] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    listed: bool = False
    wait: Wait | None = None
    proposal: Proposal | None = None
    owner: Owner | None = None
    suspended: bool = False


class OnStuck(enum.StrEnum):
    """What is done with a gang that was ungated and cannot start."""

    WAIT = "Wait"
    """Nothing is taken back; status names the pod, the node and the reason."""
    RELEASE = "Release"
    """A Job is suspended and resumed, so that it is placed anew."""


@dataclass(frozen=True, slots=True)
class Settings:
    """qps: kube-scheduler's --kube-api-qps (default 50). Times in seconds.

    least_wait: what a wait lasts at least. per_claim: what one claim in flight costs at 50 qps;
    least_per_claim: however high qps is: then the API server is the limit.
    stuck_after: for how long a member has to be unschedulable before anything is done. repair:
    members with an owner are evicted one at a time when there is room elsewhere; repair_pause:
    between two; most_repairs: of one gang (each costs a Job one of its back-off limit, 6 by
    default). slot_grace: how long the devices of a dead member wait for its successor.
    return_wait: how long, after a member went, its successor waits for them to be freed: the 30 s
    that a pod has to end by default, and what the kubelet and the claim controller take.
    """

    qps: float = 50.0
    least_wait: float = 1.0
    per_claim: float = 0.120
    least_per_claim: float = 0.060
    stuck_after: float = 30.0
    repair: bool = True
    repair_pause: float = 60.0
    most_repairs: int = 3
    slot_grace: float = 300.0
    return_wait: float = 45.0
    on_stuck: OnStuck = OnStuck.WAIT
