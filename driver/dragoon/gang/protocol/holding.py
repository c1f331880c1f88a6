"""A gang whose members were ungated: holding its pools, successors, stuck members, the end. Pure.

The rules hold the pools, not an anchor in `reservedFor`: that makes the claim controller write for
ever once a pod has finished, and namespaces hang. A dead member's claim frees
itself; its slot waits under the rule. Pods are evicted one at a time and only where an owner makes
them again; Jobs are released by suspending them.
"""

from datetime import datetime, timedelta

import msgspec

from dragoon.api.gang import Owner
from dragoon.api.gang_plan import HeldMember, Plan, stamp
from dragoon.gang.protocol.actions import (
    Action,
    DeleteRule,
    Evict,
    Journal,
    Nominate,
    RequestPlan,
    Suspend,
    WaitUntil,
)
from dragoon.gang.protocol.facts import (
    by_uid,
    claim_of,
    fences,
    held_pools,
    missing_fences,
)
from dragoon.gang.protocol.fencing import unfenced
from dragoon.gang.protocol.model import GangView, Member, Ref, Settings
from dragoon.gang.protocol.returning import awaited
from dragoon.gang.protocol.rounds import candidates, next_round, repooled
from dragoon.gang.protocol.stuck import stuck
from dragoon.gang.protocol.undoing import unused_claims


def hold(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """Keeps the rules, notes who died, places successors, looks after members that do not bind."""
    if plan.suspended:
        return _suspending(view, plan)
    kept = _kept(view, plan, settings)
    if kept != plan.held:
        return _with_held(view, plan, kept)
    wanted = held_pools(plan)
    missing = missing_fences(view, wanted)
    if missing and plan.fenced:
        return (Journal(view.gang, unfenced(plan)),)
    unneeded = tuple(DeleteRule(rule) for pool, rule in fences(view).items() if pool not in wanted)
    tidying = missing + unneeded + unused_claims(view, plan)
    if tidying:
        return tidying
    if not plan.held:
        return (Journal(view.gang, None),)
    return _evictions(view, plan) or _successors(view, plan, settings)


def _successors(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """The next round, but while it waits for the places of those that went."""
    returning = awaited(view, plan, settings)
    begun = () if returning else next_round(view)
    return begun or _waiting(view, plan, settings) + returning


def _waiting(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """What is done about members that do not bind, and when to look again."""
    found = stuck(view, plan, settings) if not candidates(view) else ()
    if any(isinstance(one, Journal | RequestPlan) for one in found):
        return found
    return found + _nominations(view, plan) + _grace(view, plan, settings)


def _with_held(
    view: GangView, plan: Plan, held: tuple[HeldMember, ...], *, suspended: str = ""
) -> tuple[Action, ...]:
    pools, held = repooled(plan, held)
    changed = msgspec.structs.replace(plan, pools=pools, held=held, suspended=suspended)
    return (Journal(view.gang, changed),)


def _kept(view: GangView, plan: Plan, settings: Settings) -> tuple[HeldMember, ...]:
    """The held members as they are now: marked where they died, without those that are over."""
    pods = by_uid(view)
    found = (_now(view, member, pods.get(member.uid), settings) for member in plan.held)
    return tuple(member for member in found if member is not None)


def _now(
    view: GangView, member: HeldMember, pod: Member | None, settings: Settings
) -> HeldMember | None:
    """What a held member has become, None where nothing of it is to be held any more."""
    if pod is not None and pod.is_alive:
        # Marked for eviction, and bound before it came to that: it stays.
        return msgspec.structs.replace(member, vacated="") if pod.node else member
    if _holds_anything(view, member):
        over = False
    elif pod is not None and pod.phase == "Succeeded":
        over = True
    else:
        over = bool(member.vacated) and _until(member, settings) <= view.now
    if over:
        return None
    if member.vacated or (pod is not None and pod.phase == "Succeeded"):
        return member
    return msgspec.structs.replace(member, vacated=stamp(view.now))


def _holds_anything(view: GangView, member: HeldMember) -> bool:
    """Whether a claim of a member that ended is still to be freed."""
    return any(
        (claim := claim_of(view, held.name, held.uid)) is not None
        and claim.allocation is not None
        and not claim.reserved
        for held in member.claims
    )


def _until(member: HeldMember, settings: Settings) -> datetime:
    return datetime.fromisoformat(member.vacated) + timedelta(seconds=settings.slot_grace)


def _grace(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """Looks again when the first empty slot has waited long enough."""
    ends = [_until(member, settings) for member in plan.held if member.vacated]
    if not ends:
        return ()
    left = max(0.0, (min(ends) - view.now).total_seconds())
    return (WaitUntil(view.tick + left),)


def _evictions(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Members that were marked: journaled first, so that a crash evicts no second one."""
    pods = by_uid(view)
    return tuple(
        Evict(pod.ref, f"cannot be bound on node {member.node}: {pod.unschedulable}")
        for member in plan.held
        if member.vacated
        and (pod := pods.get(member.uid)) is not None
        and pod.is_alive
        and pod.owner is not None
    )


def _nominations(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """kube-scheduler clears a nomination when an attempt fails: it holds the node's CPU again."""
    pods = by_uid(view)
    return tuple(
        Nominate(pod.ref, member.node)
        for member in plan.held
        if (pod := pods.get(member.uid)) is not None
        and pod.is_alive
        and pod.unschedulable
        and pod.nominated != member.node
        and member.node in view.nodes
    )


def _suspending(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """Lets a Job take its pods back and make them anew: no deletion that counts as a failure."""
    job = view.owner
    if job is None or job.uid != plan.suspended:
        return _with_held(view, plan, plan.held)
    there = by_uid(view)
    if any(member.uid in there for member in plan.held):
        return () if view.suspended else (Suspend(_job(view, job), suspend=True),)
    freeing = unused_claims(view, plan)
    if freeing:
        return freeing
    if view.suspended:
        return (Suspend(_job(view, job), suspend=False),)
    return _with_held(view, plan, ())


def _job(view: GangView, job: Owner) -> Ref:
    """The Job as a write names it."""
    return Ref(view.gang.namespace, job.name, job.uid)
