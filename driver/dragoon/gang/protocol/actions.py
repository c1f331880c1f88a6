"""What the protocol, the arbiter and the nudge can do. Pure; `executing` does it.

Order: actions of one answer do not depend on each other and may run in parallel. `Journal` always
comes alone: what it announces is done only after it was written.
"""

from dataclasses import dataclass

from dragoon.api.gang import Reservation
from dragoon.api.gang_plan import Plan
from dragoon.gang.protocol.model import Kind, Raw, Ref, Wait


@dataclass(frozen=True, slots=True)
class Journal:
    """Write status.plan, if the Gang is still at this version; None removes it."""

    gang: Ref
    plan: Plan | None


@dataclass(frozen=True, slots=True)
class Reserve:
    """Write status.reservation, if the Gang is still at this version; None removes it."""

    gang: Ref
    reservation: Reservation | None


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

    It comes again with every look while it is so, and gives no reason for another look. warning:
    whether an event says it too.
    """

    reason: str
    message: str
    warning: bool = True
    pod: Ref | None = None


Action = (
    Journal
    | Reserve
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
