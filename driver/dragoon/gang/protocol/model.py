"""What the protocol looks at and what it can do: a frozen view of one gang, and actions.

The loop makes a GangView from its informers (`viewing.view_of` does the work), calls
`deciding.decide`, lets `executing.Executor` carry out what comes back and looks again. Nothing but
the wait and the answer of the planner is kept between two looks, and both can be lost: a new
process starts them again. All else is in the API.

Order: actions of one answer do not depend on each other and may run in parallel. `Journal` always
comes alone: what it announces is done only after it was written.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from dragoon.allocator import Snapshot
from dragoon.api.gang import Owner
from dragoon.api.gang_plan import Plan, PlannedClaim, PlannedMember, PlannedPool

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


# What is looked at.


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
        return self.phase in {"Succeeded", "Failed"}

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
    together; maximum: 0 without a limit. claims: by (namespace, name), those of members, of the plan
    and of all who hold devices in its pools. planned: the plan's allocations, unpacked. rules: those of this gang, and of damage in its pools. snapshot: pools
    and what is held of them. listed: this view was made from a list of all claims that began after
    the last write of this gang. misfits: planned pods that do not fit on their planned node any
    more, and why, by UID (absent: fits). nodes: names of all nodes. wait, proposal: what this
    process remembers. suspended: the owner Job's spec.suspend. owner: the Job to suspend, with
    which all members go; None where the members have another owner or none. While the plan says that
    a Job is suspended, that Job, whether it has pods or not; None where it is gone.
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
    maximum: int = 0
    deleting: bool = False
    plan: Plan | None = None
    planned: tuple[PlannedClaim, ...] = ()
    misfits: Mapping[str, str] = field(default_factory=dict)
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
    least_per_claim: however high qps is: then the API server is the limit (gang-tried.md 1).
    stuck_after: for how long a member has to be unschedulable before anything is done. repair:
    members with an owner are evicted one at a time when there is room elsewhere; repair_pause:
    between two; most_repairs: of one gang (each costs a Job one of its back-off limit, 6 by
    default). slot_grace: how long the devices of a dead member wait for its successor.
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
    on_stuck: OnStuck = OnStuck.WAIT


# What can be done.


@dataclass(frozen=True, slots=True)
class Journal:
    """Write status.plan, if the Gang is still at this version; None removes it."""

    gang: Ref
    plan: Plan | None


@dataclass(frozen=True, slots=True)
class CreateRule:
    """Create a DeviceTaintRule (NoSchedule) on a pool. gang: None for damage."""

    name: str
    kind: Kind
    driver: str
    pool: str
    gang: Ref | None = None
    claims: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class AmendRule:
    """Name these claims on a rule, if it is still at this version."""

    rule: Ref
    claims: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class DeleteRule:
    """Delete a rule of ours, if it is still this one."""

    rule: Ref


@dataclass(frozen=True, slots=True)
class StartWait:
    """Remember this wait; then look again as WaitUntil says."""

    wait: Wait


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Look again at this tick, or as soon as something changes."""

    tick: float


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """Ask the planner where these pods fit, all together, on a snapshot of now.

    The fences of gangs are no obstacle for it (label of kind `fence`), damage and all other taints
    are. spare: UIDs of members that hold devices now and are to be planned anew: for them the
    answer must leave their present node out.
    """

    pods: tuple[str, ...]
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Relist:
    """List all claims, past every cache, and look again with a view made from that."""


@dataclass(frozen=True, slots=True)
class WriteAllocation:
    """Allocate a claim that is at this version, with the finalizer where it is missing."""

    claim: Ref
    allocation: Raw
    protect: bool = False


@dataclass(frozen=True, slots=True)
class ClearAllocation:
    """Take an allocation back, if the claim is still at this version."""

    claim: Ref


@dataclass(frozen=True, slots=True)
class Nominate:
    """Set status.nominatedNodeName of a gated pod; an empty node takes it back."""

    pod: Ref
    node: str


@dataclass(frozen=True, slots=True)
class Ungate:
    """Remove our gate in one write with the pin; an empty node: without a pin.

    kept: the gates of others, which stay. affinity: the pod's own, to which the pin is added.
    """

    pod: Ref
    node: str
    kept: tuple[str, ...] = ()
    affinity: Raw | None = None


@dataclass(frozen=True, slots=True)
class Suspend:
    """Set spec.suspend of a Job."""

    job: Ref
    suspend: bool


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict a pod that has an owner (pods/eviction: disruption budgets are kept)."""

    pod: Ref
    why: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Say on a pod that it holds what another one has too: annotation and event."""

    pod: Ref
    why: str


@dataclass(frozen=True, slots=True)
class Nudge:
    """Change a pod's metadata, so that its kubelet tries to prepare its claims again at once."""

    pod: Ref
    event: str


@dataclass(frozen=True, slots=True)
class Note:
    """Say how the gang stands: stuck, damaged, undone. For conditions and events of the Gang.

    It comes again with every look while it is so, and gives no reason for another look.
    """

    reason: str
    message: str
    warning: bool = True
    pod: Ref | None = None


Action = (
    Journal
    | CreateRule
    | AmendRule
    | DeleteRule
    | StartWait
    | WaitUntil
    | RequestPlan
    | Relist
    | WriteAllocation
    | ClearAllocation
    | Nominate
    | Ungate
    | Suspend
    | Evict
    | Mark
    | Nudge
    | Note
)
