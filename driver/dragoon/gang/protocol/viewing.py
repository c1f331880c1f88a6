"""Raw objects to the facts of a view. Pure."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from dragoon.allocator.gang.model import GangPlan, Outcome
from dragoon.allocator.model import PoolId
from dragoon.allocator.snapshot import Snapshot
from dragoon.allocator.usage import UNUSED
from dragoon.api.claims import owner_pod
from dragoon.api.gang import GATE
from dragoon.api.gang_plan import (
    Plan,
    PlannedClaim,
    PlannedMember,
    PlannedPool,
    unpack,
)
from dragoon.api.names import FINALIZER
from dragoon.gang.protocol.facts import claim_key
from dragoon.gang.protocol.model import ClaimFacts, Member, Proposal, Raw, Ref
from dragoon.gang.records import controller_of

Lookup = Callable[[str, str], Raw | None]
"""A raw claim by namespace and name, None where there is none."""


def ref(raw: Raw) -> Ref:
    """The identity of a raw object, at the version that was seen."""
    meta = raw["metadata"]
    return Ref(
        meta.get("namespace") or "", meta["name"], meta["uid"], meta.get("resourceVersion") or ""
    )


def member_of(pod: Raw, claims: Lookup, *, slot: str = "") -> Member:
    """A raw pod as a member. slot: which one it is.

    The names of its claims come from its status only; a null name there means that the pod needs
    no claim. A claim that is not this pod's own counts as not there (case C49).
    """
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    names, complete = _claims(pod, claims)
    reason, since = _unschedulable(status)
    gates = [gate["name"] for gate in spec.get("schedulingGates") or ()]
    return Member(
        ref=ref(pod),
        gated=GATE in gates,
        other_gates=tuple(gate for gate in gates if gate != GATE),
        node=spec.get("nodeName") or "",
        nominated=status.get("nominatedNodeName") or "",
        phase=status.get("phase") or "Pending",
        deleting=bool(meta.get("deletionTimestamp")),
        slot=slot,
        owner=controller_of(pod),
        claims=names,
        complete=complete,
        unschedulable=reason,
        unschedulable_since=since,
        affinity=spec.get("affinity"),
    )


def _claims(pod: Raw, claims: Lookup) -> tuple[tuple[str, ...], bool]:
    meta = pod["metadata"]
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    generated = {one["name"]: one.get("resourceClaimName") for one in statuses}
    names: list[str] = []
    complete = True
    for entry in (pod.get("spec") or {}).get("resourceClaims") or ():
        if not entry.get("resourceClaimName") and entry["name"] not in generated:
            complete = False
            continue
        name = entry.get("resourceClaimName") or generated[entry["name"]]
        if not name:
            continue
        claim = claims(meta["namespace"], name)
        owner = owner_pod(claim) if claim is not None else None
        if claim is None or (owner is not None and owner[1] != meta["uid"]):
            complete = False
            continue
        names.append(name)
    return tuple(dict.fromkeys(names)), complete


def _unschedulable(status: Raw) -> tuple[str, datetime | None]:
    for condition in status.get("conditions") or ():
        if (
            condition["type"] == "PodScheduled"
            and condition["status"] == "False"
            and condition.get("reason") == "Unschedulable"
        ):
            since = condition.get("lastTransitionTime")
            message = condition.get("message") or "Unschedulable"
            return message, datetime.fromisoformat(since) if since else None
    return "", None


def claim_facts(claim: Raw) -> ClaimFacts:
    """A raw claim, as far as the protocol looks at it."""
    meta, status = claim["metadata"], claim.get("status") or {}
    owner = owner_pod(claim)
    return ClaimFacts(
        ref=ref(claim),
        allocation=status.get("allocation"),
        reserved=tuple(one["uid"] for one in status.get("reservedFor") or ()),
        deleting=bool(meta.get("deletionTimestamp")),
        protected=FINALIZER in (meta.get("finalizers") or ()),
        made_for=owner[1] if owner else "",
    )


def claims_of_interest(
    namespace: str,
    *,
    members: Iterable[Member],
    plan: Plan | None,
    planned: Iterable[PlannedClaim],
    snapshot: Snapshot,
    claims: Lookup,
) -> Mapping[tuple[str, str], ClaimFacts]:
    """The claims that a view has to have: of members, of the plan, of holders in its pools."""
    keys = {(namespace, name) for member in members for name in member.claims}
    keys |= {(namespace, one.name) for one in planned}
    if plan is not None:
        keys |= {(namespace, claim.name) for member in plan.held for claim in member.claims}
        pools = (PoolId(pool.driver, pool.pool) for pool in plan.pools)
        for usage in (snapshot.usage.get(pool, UNUSED) for pool in pools):
            for holds in (*usage.exclusive.values(), *usage.shared.values()):
                keys |= {claim_key(hold.claim) for hold in holds}
    found = {key: claims(*key) for key in keys}
    return {key: claim_facts(raw) for key, raw in found.items() if raw is not None}


class Unpacked:
    """The allocations of plans, each unpacked once: a named holder of the last of each gang."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, tuple[PlannedClaim, ...]]] = {}

    def of(self, gang: Ref, plan: Plan | None) -> tuple[PlannedClaim, ...]:
        """The planned claims of a gang. Raises InvalidInputError for a journal that is damaged."""
        if plan is None or not plan.packed:
            self._known.pop(gang.uid, None)
            return ()
        known = self._known.get(gang.uid)
        if known is None or known[0] != plan.packed:
            known = self._known[gang.uid] = plan.packed, unpack(plan.packed)
        return known[1]

    def forget(self, uid: str) -> None:
        """A Gang is gone."""
        self._known.pop(uid, None)


def proposal_of(asked: Iterable[str], outcome: Outcome) -> Proposal:
    """The planner's answer as the protocol takes it."""
    uids = frozenset(asked)
    if not isinstance(outcome, GangPlan):
        refusal = outcome.message or type(outcome).__name__
        return Proposal(uids, refusal=refusal)
    allocations: dict[str, tuple[str, Mapping[str, Any]]] = {}
    members: list[PlannedMember] = []
    for placement in outcome.placements:
        pod = placement.pod
        names = {claim["metadata"]["uid"]: claim["metadata"]["name"] for claim in pod.claims}
        for uid, allocation in placement.allocations.items():
            allocations[uid] = names[uid], allocation
        members.append(
            PlannedMember(
                pod=pod.name, uid=pod.uid, node=placement.node, claims=tuple(names.values())
            )
        )
    if {member.uid for member in members} != uids:
        return Proposal(uids, refusal="there is no room for all of them")
    return Proposal(
        uids,
        members=tuple(members),
        claims=tuple(
            PlannedClaim(name=name, uid=uid, allocation=allocation)
            for uid, (name, allocation) in sorted(allocations.items())
        ),
        pools=tuple(PlannedPool(driver=pool.driver, pool=pool.pool) for pool in outcome.pools),
    )
