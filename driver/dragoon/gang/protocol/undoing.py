"""Taking a round back before any of its members was ungated, and what is left of a gang. Pure.

Order matters: first a rule for what was given twice, then the allocations, then the fences. While
a device has two holders kube-scheduler would give it to a stranger as soon as one lets go, until it
restarts: only a rule on the pool prevents that.
"""

from dragoon.allocator.contention import contentions
from dragoon.api.gang_plan import Plan
from dragoon.gang.protocol.actions import (
    Action,
    ClearAllocation,
    DeleteRule,
    Journal,
    Nominate,
    Relist,
)
from dragoon.gang.protocol.damage import guards
from dragoon.gang.protocol.facts import (
    by_uid,
    claim_of,
    fences,
    held_pools,
    is_same,
    round_pools,
)
from dragoon.gang.protocol.model import ClaimFacts, GangView, Member
from dragoon.gang.protocol.rounds import settled


def release(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Takes the round back; at the end nothing of it is left but the reason."""
    guarding = _guards(view)
    if guarding:
        return guarding
    written = _written(view)
    if written and not view.listed:
        # What others hold beside us has to be known before we let go.
        return (Relist(),)
    undo = tuple(ClearAllocation(claim.ref) for claim in written) + _nominations(view, plan)
    if undo:
        return undo
    kept = {*held_pools(plan), *(() if view.deleting else view.reserved)}
    unneeded = tuple(DeleteRule(rule) for pool, rule in fences(view).items() if pool not in kept)
    return unneeded or _over(view, plan)


def _guards(view: GangView) -> tuple[Action, ...]:
    """The rules on pools where this round's claims hold what others hold too."""
    ours = {str(claim.ref) for claim in _written(view)}
    found = (
        one
        for one in contentions(view.snapshot, round_pools(view))
        if not ours.isdisjoint(one.claims)
    )
    return guards(found, view.rules, view.claims)


def _written(view: GangView) -> list[ClaimFacts]:
    """The claims that have what this round planned for them, and that no pod can use yet.

    Whoever else ungated a pod, its claim is not cleared: kube-scheduler would give it others.
    """
    in_use = {
        name
        for member in view.members
        if member.is_alive and not member.gated
        for name in member.claims
    }
    return [
        claim
        for planned in view.planned
        if planned.name not in in_use
        and (claim := claim_of(view, planned.name, planned.uid)) is not None
        and is_same(claim.allocation, planned.allocation)
        and not claim.reserved
    ]


def _nominations(view: GangView, plan: Plan) -> tuple[Action, ...]:
    pods = by_uid(view)
    return tuple(
        Nominate(pod.ref, "")
        for member in plan.members
        if (pod := pods.get(member.uid)) is not None and _is_nominated(pod)
    )


def _is_nominated(pod: Member) -> bool:
    """By whichever plan of ours: nobody else nominates a pod that is gated."""
    return pod.gated and pod.is_alive and bool(pod.nominated)


def _over(view: GangView, plan: Plan) -> tuple[Action, ...]:
    if not plan.held and not plan.suspended:
        return (Journal(view.gang, None),)
    return (Journal(view.gang, settled(view, plan, plan.held, plan.reason)),)


def dissolve(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """What is left to do for a Gang that is going: no rule stays, running members go on."""
    rules = tuple(DeleteRule(rule) for rule in fences(view).values())
    return unused_claims(view, plan) or rules


def unused_claims(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Takes back claims made by users that we allocated and that no pod came to use.

    Those that a pod used are freed by the claim controller when the last one has ended.
    """
    named = {name for member in view.members if member.is_alive for name in member.claims}
    return tuple(
        ClearAllocation(claim.ref)
        for member in plan.held
        for held in member.claims
        if held.made_by_user
        and held.name not in named
        and (claim := claim_of(view, held.name, held.uid)) is not None
        and claim.allocation is not None
        and not claim.reserved
    )
