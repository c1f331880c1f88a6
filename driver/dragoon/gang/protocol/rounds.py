"""Which pods are placed next, and the journal of their round. Pure.

A round places its members all or none. The first has the minimum; where members run already, each
pod that comes later (a successor, or one beyond the minimum) has a round of its own.
"""

import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

import msgspec

from dragoon.api.gang_plan import PLAN_VERSION, HeldMember, Plan, PlannedPool, Step, pack, stamp
from dragoon.gang.protocol.actions import Action, ClearAllocation, Journal, Nominate, RequestPlan
from dragoon.gang.protocol.facts import by_uid, is_stranded
from dragoon.gang.protocol.model import GangView, Member, Proposal

_REASON_LENGTH = 1000
_NUMBERS: Final = re.compile(r"([0-9]+)")


def moment(now: datetime) -> str:
    """A time as exactly as it is known: two rounds never have the same."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def advance(view: GangView, plan: Plan, step: Step, reason: str = "") -> tuple[Action, ...]:
    """Journals the next step of a plan."""
    reason = reason[:_REASON_LENGTH]
    changed = msgspec.structs.replace(plan, step=step, since=stamp(view.now), reason=reason)
    return (Journal(view.gang, changed),)


def nominations(view: GangView, plan: Plan) -> tuple[Action, ...]:
    """The nominations of gated members that are not written yet: each holds its node's CPU.

    kube-scheduler would write them otherwise, before it binds (KEP-5278): as many writes, and later.
    """
    pods = by_uid(view)
    return tuple(
        Nominate(pod.ref, member.node)
        for member in plan.members
        if (pod := pods.get(member.uid)) is not None and pod.gated and pod.nominated != member.node
    )


def next_round(view: GangView) -> tuple[Action, ...]:
    """Asks for a plan of the pods to be placed next, or journals the one that has come."""
    pods = candidates(view)
    if not pods:
        return ()
    strays = stray_allocations(view, pods)
    if strays:
        return strays
    asked = tuple(pod.ref.uid for pod in pods)
    proposal = view.proposal
    if proposal is None or proposal.asked != frozenset(asked):
        return (RequestPlan(asked),)
    if proposal.refusal:
        return ()
    return begin(view, proposal)


def candidates(view: GangView) -> tuple[Member, ...]:
    """The pods of the next round, in the order of their slots; none while pods are missing."""
    held = {member.uid for member in view.plan.held} if view.plan else set()
    ready = sorted(
        (
            member
            for member in view.members
            if (member.gated or is_stranded(view, member))
            and member.is_alive
            and member.complete
            and not member.other_gates
            and member.ref.uid not in held
        ),
        key=_order,
    )
    placed = sum(1 for member in view.members if member.ref.uid in held and member.is_alive)
    if placed:
        room = view.maximum == 0 or placed < view.maximum
        return tuple(ready[:1]) if room else ()
    finished = sum(1 for member in view.members if member.phase == "Succeeded")
    needed = max(1, view.minimum - finished - _settled_elsewhere(view, held))
    return tuple(ready[:needed]) if len(ready) >= needed else ()


def _settled_elsewhere(view: GangView, held: Collection[str]) -> int:
    """Members that somebody else has bound and that have all they need, so that they run anyway.

    Such as one that was left from a round that was taken back.
    """
    return sum(
        1
        for member in view.members
        if member.node
        and member.is_alive
        and member.ref.uid not in held
        and not is_stranded(view, member)
    )


def _order(member: Member) -> tuple[list[tuple[int, str]], str]:
    """Slots in the order of the numbers in them (`workers/2` before `workers/10`), then names."""
    parts = _NUMBERS.split(member.slot)
    return [(int(part) if part.isdecimal() else 0, part) for part in parts], member.ref.name


def stray_allocations(view: GangView, pods: tuple[Member, ...]) -> tuple[Action, ...]:
    """Takes back what an earlier Gang of these pods, or a write that came late, has left.

    The pods are gated and nothing is journaled for them, so their own claims are nobody's else.
    What a bound pod has got it keeps.
    """
    return tuple(
        ClearAllocation(claim.ref)
        for pod in pods
        if pod.gated
        for name in pod.claims
        if (claim := view.claims.get((pod.ref.namespace, name))) is not None
        and claim.made_for == pod.ref.uid
        and claim.allocation is not None
        and not claim.reserved
    )


def begin(view: GangView, proposal: Proposal) -> tuple[Action, ...]:
    """Journals a new plan: its pools are fenced next."""
    old = view.plan
    pools, held = repooled(old, old.held, proposal.pools) if old else (proposal.pools, ())
    # In pools whose rules have stood since, nothing of kube-scheduler's is in flight any more.
    stands = old is not None and set(proposal.pools) <= set(old.pools)
    slots = {uid: pod.slot for uid, pod in by_uid(view).items()}
    plan = Plan(
        version=PLAN_VERSION,
        serial=old.serial + 1 if old else 1,
        step=Step.FENCE,
        since=stamp(view.now),
        fenced=old.fenced if old and stands else "",
        wait_until=old.wait_until if old and stands else "",
        pools=pools,
        members=tuple(
            msgspec.structs.replace(one, slot=slots.get(one.uid, "")) for one in proposal.members
        ),
        held=held,
        packed=pack(proposal.claims),
        suspended=old.suspended if old else "",
        repaired=old.repaired if old else "",
        repairs=old.repairs if old else 0,
    )
    return (Journal(view.gang, plan),)


def settled(view: GangView, plan: Plan, held: tuple[HeldMember, ...], reason: str = "") -> Plan:
    """The plan between two rounds: these members hold devices, and nothing is planned."""
    pools, held = repooled(plan, held)
    return msgspec.structs.replace(
        plan,
        step=Step.HOLD,
        since=stamp(view.now),
        pools=pools,
        members=(),
        held=held,
        packed="",
        reason=reason,
    )


def repooled(
    plan: Plan, held: tuple[HeldMember, ...], more: tuple[PlannedPool, ...] = ()
) -> tuple[tuple[PlannedPool, ...], tuple[HeldMember, ...]]:
    """The pools that these held members have, and more; and the members, pointing into them."""
    kept = (plan.pools[at] for member in held for at in member.pools)
    pools = tuple(dict.fromkeys((*kept, *more)))
    place = {pool: index for index, pool in enumerate(pools)}
    return pools, tuple(
        msgspec.structs.replace(one, pools=tuple(place[plan.pools[at]] for at in one.pools))
        for one in held
    )
