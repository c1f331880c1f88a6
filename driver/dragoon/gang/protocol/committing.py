"""Commit, verify, last look, pin and ungate. Pure.

Under the fence each claim is allocated by one write, `reservedFor` stays empty: kube-scheduler adds
the pod when it has made its own last check. Before the first gate goes, everything can be taken
back; afterwards the round only goes forward.

A pod that somebody else has bound already has no gate: kube-controller-manager reserves its claims
as soon as they are allocated, and it starts.
"""

from collections.abc import Mapping, Sequence

from dragoon.allocator.contention import Contention
from dragoon.allocator.model import PoolId
from dragoon.api.gang_plan import (
    HeldClaim,
    HeldMember,
    Plan,
    PlannedClaim,
    PlannedMember,
    Step,
    stamp,
)
from dragoon.gang.protocol.actions import Action, Journal, Relist, Ungate, WriteAllocation
from dragoon.gang.protocol.facts import (
    broken,
    by_uid,
    claim_of,
    holds,
    is_same,
    missing_fences,
    overlaps,
    pool_id,
    unusable,
)
from dragoon.gang.protocol.model import GangView
from dragoon.gang.protocol.rounds import advance, nominations, settled


def commit(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Writes the allocations, and the nominations, that are not written yet."""
    trouble = _trouble(view, plan)
    if trouble:
        return advance(view, plan, Step.RELEASE, trouble)
    writes = tuple(
        WriteAllocation(
            claim.ref,
            {**planned.allocation, "allocationTimestamp": stamp(view.now)},
            protect=not claim.protected,
        )
        for planned in view.planned
        if (claim := claim_of(view, planned.name, planned.uid)) is not None
        and claim.allocation is None
    )
    return writes + nominations(view, plan) or advance(view, plan, Step.VERIFY)


def verify(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Reads all claims again: an overlap is damage, and undone under a rule that stays."""
    trouble = _trouble(view, plan)
    if trouble:
        return advance(view, plan, Step.RELEASE, trouble)
    if not view.listed:
        return (Relist(),)
    unwritten = [one for one in view.planned if not _is_written(view, one)]
    if unwritten:
        return advance(view, plan, Step.COMMIT, f"claim {unwritten[0].name} is not allocated")
    found = overlaps(view)
    if found:
        return advance(view, plan, Step.RELEASE, _given_twice(found[0]))
    trouble = _last_look(view, plan)
    return advance(view, plan, Step.RELEASE if trouble else Step.UNGATE, trouble)


def ungate(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Pins and ungates all members.

    From here on nothing is taken back: whether a gate is still there cannot be known for sure
    while a write is under way. A member that was lost meanwhile, or whose claim was, stays gated
    and is placed again as a successor of itself.
    """
    pods = by_uid(view)
    planned = {one.name: one for one in view.planned}
    ready = tuple(
        Ungate(pod.ref, member.node, pod.other_gates, pod.affinity)
        for member in plan.members
        if (pod := pods.get(member.uid)) is not None
        and pod.is_alive
        and pod.gated
        and all(_is_written(view, planned[name]) for name in member.claims if name in planned)
    )
    return ready or _hold(view, plan)


def _last_look(view: GangView, plan: Plan) -> str:
    """Why a member could not be bound now: what the plan found may have changed since."""
    for member in plan.members:
        if member.uid in view.misfits:
            return f"pod {member.pod} on node {member.node}: {view.misfits[member.uid]}"
        for name in member.claims:
            claim = view.claims.get((view.gang.namespace, name))
            if claim is None or claim.allocation is None:
                return f"claim {name} of pod {member.pod} is not allocated any more"
    return ""


def _trouble(view: GangView, plan: Plan) -> str:
    if missing_fences(view, map(pool_id, plan.pools)):
        return "a rule was deleted by somebody else"
    return broken(view, plan.members) or unusable(view)


def _is_written(view: GangView, planned: PlannedClaim) -> bool:
    claim = claim_of(view, planned.name, planned.uid)
    return claim is not None and is_same(claim.allocation, planned.allocation)


def _given_twice(found: Contention) -> str:
    return f"given twice: {found.pool} {found.what}, to {' and '.join(found.claims)}"


def _hold(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Journals that the round is over: its members are held, each in place of a dead one."""
    pods = by_uid(view)
    pools = {pool_id(pool): index for index, pool in enumerate(plan.pools)}
    planned = {one.name: one for one in view.planned}
    placed = tuple(
        _held(view, member, [planned[name] for name in member.claims if name in planned], pools)
        for member in plan.members
        if (pod := pods.get(member.uid)) is None or not pod.gated
    )
    kept = list(plan.held)
    for member in placed:
        before = _predecessor(kept, member)
        if before is not None:
            kept.remove(before)
    return (Journal(view.gang, settled(view, plan, (*kept, *placed))),)


def _held(
    view: GangView,
    member: PlannedMember,
    planned: Sequence[PlannedClaim],
    pools: Mapping[PoolId, int],
) -> HeldMember:
    places = (pools[hold.pool] for one in planned for hold in holds(view, one))
    return HeldMember(
        pod=member.pod,
        uid=member.uid,
        node=member.node,
        slot=member.slot,
        pools=tuple(dict.fromkeys(places)),
        claims=tuple(
            HeldClaim(name=one.name, uid=one.uid, made_by_user=_lasts(view, one)) for one in planned
        ),
    )


def _lasts(view: GangView, planned: PlannedClaim) -> bool:
    claim = claim_of(view, planned.name, planned.uid)
    return claim is not None and not claim.made_for


def _predecessor(held: list[HeldMember], member: HeldMember) -> HeldMember | None:
    """The dead member whose place this one takes: of the same slot, or any if slots are alike."""
    empty = [one for one in held if one.vacated]
    same = [one for one in empty if one.slot and one.slot == member.slot]
    return next(iter(same or [one for one in empty if not one.slot or not member.slot]), None)
