"""The Gang object (gangs.dragoon.dev, v1alpha1): what users write, what the controller answers.

A Gang is a group of pods whose claims are allocated all together or not at all.
The controller makes one from the labels of pods; a user writes one to say more. The journal of its
plan, `status.plan`, is in `gang_plan`. The same layout stands in deploy/crds: what is missing
there is dropped by the API server, so a contract test sends every field through a real one.
"""

import enum
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from dragoon.api.gang_plan import (
    UNREADABLE,
    Plan,
    PlannedPool,
    Step,
    Wire,
    check_times,
    unfolded,
)
from dragoon.errors import InvalidInputError

GROUP: Final = "dragoon.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Gang"

LABEL: Final = "dragoon.dev/gang"
"""On a pod: the name of its gang. On a Gang or a DeviceTaintRule of ours: whose it is."""
ANNOTATION_SIZE: Final = "dragoon.dev/gang-size"
"""On a pod: how many members have to run together."""
ANNOTATION_SCOPE: Final = "dragoon.dev/gang-scope"
"""On a pod: `name` joins the pods of several owners; `owner`, the default, keeps them apart."""
ANNOTATION_SOURCE: Final = "dragoon.dev/gang-source"
"""On a pod: which of several projects that say that it is in a group counts."""
ANNOTATION_WORKLOAD: Final = "dragoon.dev/kueue-workload"
"""On a pod: the UID of the Workload with which Kueue admitted it after our check."""
GATE: Final = "dragoon.dev/gang"
"""The scheduling gate that holds a member until its claims are allocated."""
TAINT: Final = "dragoon.dev/gang"
"""The key of the taint that keeps kube-scheduler off the pools of a gang."""
MADE_BY: Final = "app.kubernetes.io/managed-by"
MADE_BY_CONTROLLER: Final = "dragoon-controller"
"""On a Gang: the controller made it from labels, and deletes it when no member is left."""

DEFAULT_TIMEOUT_S: Final = 300
MOST_MEMBERS: Final = 4096
SIZES: Final = f"a whole number from 1 to {MOST_MEMBERS}"
"""What a size can be, in words."""


def members_in(text: str) -> int | None:
    """The size that a text says; None where it is none."""
    digits = text.strip()
    number = int(digits[:9]) if digits.isascii() and digits.isdigit() else 0
    return number if 0 < number <= MOST_MEMBERS else None


class Phase(enum.StrEnum):
    """Where a gang stands, in the order of its life."""

    INVALID = "Invalid"
    """What was written cannot work; a person has to change it."""
    GATHERING = "Gathering"
    """Members or their claims are missing."""
    WAITING = "Waiting"
    """Complete, and there is no room for it now."""
    FENCING = "Fencing"
    """Planned; kube-scheduler is kept off the pools and its last decisions are waited for."""
    COMMITTING = "Committing"
    """Allocations are being written and verified."""
    BINDING = "Binding"
    """All is allocated, the members are free to be bound."""
    RUNNING = "Running"
    """The minimum of members is bound."""
    STUCK = "Stuck"
    """A member cannot be bound and only a person can help; the message says which and why."""
    RELEASING = "Releasing"
    """What was allocated is being taken back."""
    FINISHED = "Finished"
    """Every member has ended."""


SETTLED: Final = frozenset((Phase.RUNNING, Phase.FINISHED))
"""Phases in which a gang waits for nothing."""


class Condition(enum.StrEnum):
    """Types of the conditions in status.conditions."""

    VALID = "Valid"
    """False: what was written cannot work."""
    COMPLETE = "Complete"
    """The minimum of members and all their claims are there."""
    UNGATED = "Ungated"
    """True: pods with the label came without the gate; they are never planned."""
    PLACED = "Placed"
    """A plan holds; False with the reason NoRoom, SearchStopped, Blocked or Never."""
    ALLOCATED = "Allocated"
    """Every claim of every member is allocated."""
    SATISFIED = "Satisfied"
    """The minimum of members is bound now. Goes back to False when one is lost."""
    RESERVED = "Reserved"
    """Devices are kept for it until all that it needs are free; only there while that is so."""
    PROVISIONED = "Provisioned"
    """What an autoscaler says of the nodes that were asked for; only there where any were."""


class Owner(Wire, frozen=True, kw_only=True):
    """Who made the members: the top of the chain of controllers."""

    api_version: str
    kind: str
    name: str
    uid: str


class Level(Wire, frozen=True, kw_only=True):
    """What members have in common: the value of a node label, or of a device attribute.

    Exactly one is set. attribute: `domain/name`, such as gpu.dragoon.dev/fabricClique.
    """

    node_label: str = ""
    attribute: str = ""


class Topology(Wire, frozen=True, kw_only=True):
    """required: all members agree on each. preferred: as few values as can be, the first first."""

    required: tuple[Level, ...] = ()
    preferred: tuple[Level, ...] = ()


class Source(Wire, frozen=True, kw_only=True):
    """A group of another project. name: which way of saying so (docs/gang-sources.md)."""

    name: str
    group: str


class GangSpec(Wire, frozen=True, kw_only=True):
    """What a gang is to be.

    size: members that run together or not at all. max_size: members beyond it are not planned; 0
    means no limit. timeout_seconds: how long members may be missing before the gang is told what
    is missing. owner, source: only pods of this owner, or of this group of another project, are
    members; without both every pod with the label is that has no Gang of its owner or group.
    """

    size: int
    max_size: int = 0
    timeout_seconds: int = DEFAULT_TIMEOUT_S
    topology: Topology = Topology()
    owner: Owner | None = None
    source: Source | None = None


class ConditionStatus(Wire, frozen=True, kw_only=True):
    """One entry of status.conditions (metav1.Condition)."""

    type: str
    status: str
    reason: str
    last_transition_time: str
    message: str = ""
    observed_generation: int = 0


class Members(Wire, frozen=True, kw_only=True):
    """How many members there are.

    minimum: as asked for. present: that count now. ready: bound to a node. finished: that ended.
    summary: `ready/minimum`, for the column.
    """

    minimum: int = 0
    present: int = 0
    ready: int = 0
    finished: int = 0
    summary: str = ""


class Avoided(Wire, frozen=True, kw_only=True):
    """A node on which a member failed to be bound. until: RFC 3339; it is not planned before."""

    node: str
    until: str
    reason: str = ""


class Reservation(Wire, frozen=True, kw_only=True):
    """Devices that are kept for a gang that waits, in use or not.

    since: RFC 3339. pools: that are fenced for it. nodes: where its members would go. packed: what
    its claims would get, as in a plan (gang_plan.unpack).
    """

    since: str
    pools: tuple[PlannedPool, ...]
    nodes: tuple[str, ...] = ()
    packed: str = ""


class GangStatus(Wire, frozen=True, kw_only=True):
    """What the controller says and remembers.

    phase: None until the controller has looked. waiting_for: one short text for the column, empty
    when nothing is waited for. explanation: why there is no room, line by line, with what would
    help. complete_since, missing_since: RFC 3339. notes: rules of pods that the plan does not know
    (the plan is then optimistic). reservation: what is kept for it while it waits.
    """

    observed_generation: int = 0
    phase: Phase | None = None
    members: Members = Members()
    waiting_for: str = ""
    explanation: tuple[str, ...] = ()
    conditions: tuple[ConditionStatus, ...] = ()
    missing_since: str = ""
    complete_since: str = ""
    avoided: tuple[Avoided, ...] = ()
    notes: tuple[str, ...] = ()
    reservation: Reservation | None = None
    plan: Plan | None = None

    def condition(self, type_: str) -> ConditionStatus | None:
        """The condition of a type, None where it was never set."""
        return next((one for one in self.conditions if one.type == type_), None)


class GangObject(Wire, frozen=True, kw_only=True):
    """A Gang as it is in the API.

    group: the label that its members carry. version: its resourceVersion. owners: with which it
    goes (metadata.ownerReferences).
    """

    namespace: str
    name: str
    uid: str
    version: str
    group: str
    generation: int
    created: str
    deleting: bool
    made_by_us: bool
    owners: tuple[Owner, ...]
    spec: GangSpec
    status: GangStatus

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


_Part = TypeVar("_Part", bound=Wire)


def gang_of(raw: Mapping[str, Any]) -> GangObject:
    """The view of a raw Gang. Raises InvalidInputError, naming the field, for a spec.

    A status that cannot be read, such as one of a later version, counts as none but for its plan;
    a plan that cannot be read is one of an unknown version: it is there, and nobody touches it.
    """
    meta = raw["metadata"]
    labels = meta.get("labels") or {}
    return GangObject(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta["uid"],
        version=meta.get("resourceVersion") or "",
        group=labels.get(LABEL) or meta["name"],
        generation=meta.get("generation") or 0,
        created=meta.get("creationTimestamp") or "",
        deleting=bool(meta.get("deletionTimestamp")),
        made_by_us=labels.get(MADE_BY) == MADE_BY_CONTROLLER,
        owners=tuple(
            _read(one, Owner, "metadata.ownerReferences")
            for one in meta.get("ownerReferences") or ()
        ),
        spec=_read(raw.get("spec") or {}, GangSpec, "spec"),
        status=_status(raw.get("status") or {}),
    )


def wire(part: Wire) -> dict[str, Any]:
    """A part of the layout as it is sent."""
    found: dict[str, Any] = msgspec.to_builtins(part)
    return found


def _status(raw: Mapping[str, Any]) -> GangStatus:
    try:
        found = _read(raw, GangStatus, "status")
        check_times("status", _times_of(found))
        plan_ = None if found.plan is None else unfolded(found.plan)
        return msgspec.structs.replace(found, plan=plan_)
    except InvalidInputError:
        plan = raw.get("plan")
        return GangStatus(plan=None if plan is None else _plan(plan))


def _times_of(status: GangStatus) -> Iterator[str]:
    """All times that are reckoned with, but for the plan's."""
    yield from (status.missing_since, status.complete_since)
    yield from (one.until for one in status.avoided)
    if status.reservation is not None:
        yield status.reservation.since


def _plan(raw: Any) -> Plan:
    try:
        return unfolded(_read(raw, Plan, "status.plan"))
    except InvalidInputError:
        return Plan(version=UNREADABLE, serial=0, step=Step.HOLD, since="")


def _read(raw: Any, kind: type[_Part], field: str) -> _Part:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"Gang: {field}: {error}") from error
