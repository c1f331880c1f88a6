"""What a view says, asked in the words of the protocol. Pure; every function takes the view."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from dragoon.allocator.contention import Contention, contentions, published
from dragoon.allocator.model import Device, PoolId, Taint
from dragoon.allocator.pools import PoolSlices
from dragoon.allocator.snapshot import Snapshot
from dragoon.allocator.usage import Hold, holds_of
from dragoon.api import gang
from dragoon.api.gang_plan import Plan, PlannedClaim, PlannedMember, PlannedPool
from dragoon.api.names import KEEPS_OFF, TAINT_GANG_ONLY
from dragoon.gang.protocol.actions import CreateRule
from dragoon.gang.protocol.model import ClaimFacts, GangView, Kind, Member, Ref
from dragoon.gang.protocol.objects import rule_name

OURS: Final = frozenset((gang.TAINT, TAINT_GANG_ONLY))
"""Taints that are for everybody but gangs: fences, and nodes for gangs only."""


def by_uid(view: GangView) -> dict[str, Member]:
    """The members by the UIDs of their pods."""
    return {member.ref.uid: member for member in view.members}


def claim_of(view: GangView, name: str, uid: str) -> ClaimFacts | None:
    """The claim of this name, if it is still the one with this UID."""
    found = view.claims.get((view.gang.namespace, name))
    return found if found is not None and found.ref.uid == uid else None


def is_stranded(view: GangView, member: Member) -> bool:
    """Whether a pod is bound and has a claim without devices.

    Somebody else chose its node (spec.nodeName, another scheduler); kube-scheduler never looks at
    it again, so nobody else allocates for it.
    """
    claims = (view.claims.get((member.ref.namespace, name)) for name in member.claims)
    return (
        bool(member.node)
        and member.phase == "Pending"
        and any(claim is not None and claim.allocation is None for claim in claims)
    )


def claim_key(label: str) -> tuple[str, str]:
    """Namespace and name of a claim from `namespace/name`."""
    namespace, _, name = label.rpartition("/")
    return namespace, name


def pool_id(pool: PlannedPool) -> PoolId:
    """The pool as the allocator knows it."""
    return PoolId(pool.driver, pool.pool)


def is_same(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> bool:
    """Whether an allocation gives the same devices for the same requests as the planned one."""
    if one is None:
        return False
    left, right = _results(one), _results(other)
    return left == right or _devices(left) == _devices(right)


def _results(allocation: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The devices of an allocation, with the requests that they are for."""
    return (allocation.get("devices") or {}).get("results") or ()


def _devices(results: Iterable[Mapping[str, Any]]) -> set[tuple[str, ...]]:
    keys = ("request", "driver", "pool", "device", "shareID")
    return {tuple(result.get(key) or "" for key in keys) for result in results}


def fences(view: GangView) -> dict[PoolId, Ref]:
    """The fences of this gang, by pool."""
    return {
        PoolId(rule.driver, rule.pool): rule.ref
        for rule in view.rules
        if rule.kind is Kind.FENCE and rule.gang == view.gang.uid
    }


def damaged(view: GangView) -> set[PoolId]:
    """Pools that nobody may use until the holders of a device given twice are gone."""
    return {PoolId(rule.driver, rule.pool) for rule in view.rules if rule.kind is Kind.DAMAGE}


def missing_fences(view: GangView, pools: Iterable[PoolId]) -> tuple[CreateRule, ...]:
    """The rules that have to be created, so that these pools are fenced.

    Each names the claims made by users that the plan allocates: nobody else would free them if the
    gang were deleted before their pods came to run.
    """
    have = fences(view)
    lasting = lasting_claims(view)
    return tuple(
        CreateRule(
            rule_name(Kind.FENCE, pool.driver, pool.pool, view.gang.uid),
            Kind.FENCE,
            pool.driver,
            pool.pool,
            view.gang,
            lasting.get(pool, ()),
        )
        for pool in dict.fromkeys(pools)
        if pool not in have and needs_fence(view, pool)
    )


def needs_fence(view: GangView, pool: PoolId) -> bool:
    """Whether kube-scheduler may choose devices of a pool: not where all are for gangs only."""
    devices = published(view.snapshot.pools.get(pool)).values()
    return not devices or not all(
        any(taint.key == TAINT_GANG_ONLY and taint.effect in KEEPS_OFF for taint in device.taints)
        for device in devices
    )


def lasting_claims(view: GangView) -> dict[PoolId, tuple[Ref, ...]]:
    """By pool the planned claims that were not made for a pod and so do not go with one."""
    found: dict[PoolId, dict[Ref, None]] = {}
    for planned in view.planned:
        claim = claim_of(view, planned.name, planned.uid)
        if claim is not None and not claim.made_for:
            ref = claim.ref._replace(version="")
            for hold in holds(view, planned):
                found.setdefault(hold.pool, {})[ref] = None
    return {pool: tuple(claims) for pool, claims in found.items()}


def holds(view: GangView, planned: PlannedClaim) -> tuple[Hold, ...]:
    """What a planned claim is to hold."""
    return holds_of(planned.allocation, f"{view.gang.namespace}/{planned.name}")


def round_pools(view: GangView) -> tuple[PoolId, ...]:
    """The pools in which this round has devices."""
    pools = (hold.pool for planned in view.planned for hold in holds(view, planned))
    return tuple(dict.fromkeys(pools))


def held_pools(plan: Plan) -> tuple[PoolId, ...]:
    """The pools of members that were ungated, and of slots that wait for a successor."""
    indexes = dict.fromkeys(index for member in plan.held for index in member.pools)
    return tuple(pool_id(plan.pools[index]) for index in indexes)


def overlaps(view: GangView) -> tuple[Contention, ...]:
    """What this round's claims hold, or would hold, together with others beyond what there is."""
    held = [(planned, holds(view, planned)) for planned in view.planned]
    more = [hold for planned, its in held if _is_unallocated(view, planned) for hold in its]
    pools = dict.fromkeys(hold.pool for _, its in held for hold in its)
    ours = {f"{view.gang.namespace}/{planned.name}" for planned in view.planned}
    found = contentions(view.snapshot, pools, more)
    return tuple(one for one in found if not ours.isdisjoint(one.claims))


def _is_unallocated(view: GangView, planned: PlannedClaim) -> bool:
    claim = claim_of(view, planned.name, planned.uid)
    return claim is not None and claim.allocation is None


def unusable(view: GangView) -> str:
    """Why a planned device cannot be used any more, empty if all can.

    The fences of gangs are no reason; whatever the planner accepted on the claim's own account
    (tolerations) is in the allocation.
    """
    return next(problems_of(view.planned, view.snapshot, damaged(view)), "")


def problems_of(
    planned: Iterable[PlannedClaim], snapshot: Snapshot, spoiled: AbstractSet[PoolId]
) -> Iterator[str]:
    """Why devices of these claims cannot be used. spoiled: pools with a device given twice."""
    devices: dict[PoolId, Mapping[str, Device]] = {}
    for claim in planned:
        for result in _results(claim.allocation):
            pool = PoolId(result["driver"], result["pool"])
            slices = snapshot.pools.get(pool)
            if pool not in devices:
                devices[pool] = published(slices)
            device = devices[pool].get(result["device"])
            if pool in spoiled:
                yield f"pool {pool}: a device of it was given twice"
            elif slices is None or device is None:
                yield f"device {pool}/{result['device']} is not published any more"
            elif taint := _keeping_off(slices, device, result):
                yield f"device {pool}/{device.name} is tainted: {taint}"


def _keeping_off(slices: PoolSlices, device: Device, result: Mapping[str, Any]) -> Taint | None:
    """A taint that the claim does not tolerate; the fences of gangs are none."""
    tolerated = {one.get("key") or "" for one in result.get("tolerations") or ()} | OURS
    if "" in tolerated:
        return None
    rules = (rule.taint for rule in slices.rules if rule.device in {None, device.name})
    taints = (one for one in (*device.taints, *rules) if one.key not in tolerated)
    return next((one for one in taints if one.effect in KEEPS_OFF), None)


def broken(view: GangView, members: Iterable[PlannedMember]) -> str:
    """Why these members cannot be placed all together any more, empty if they can."""
    pods = by_uid(view)
    for planned in members:
        pod = pods.get(planned.uid)
        if pod is None or not pod.is_alive:
            return f"pod {planned.pod} is gone"
        if not pod.gated and pod.node != planned.node:
            return f"pod {planned.pod} was ungated by somebody else"
        if planned.node not in view.nodes:
            return f"node {planned.node} is gone"
    for claim in view.planned:
        found = claim_of(view, claim.name, claim.uid)
        if found is None or found.deleting:
            return f"claim {claim.name} is gone"
        if found.allocation is not None and not is_same(found.allocation, claim.allocation):
            return f"claim {claim.name} was allocated by somebody else"
    return ""
