"""A successor and the place of the one that went: it waits while that is being freed. Pure.

The claim of a pod that went is freed by kube-controller-manager some time later. Until then its
devices look taken, and a plan made meanwhile would put the successor elsewhere for good.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from dragoon.allocator.model import PoolId
from dragoon.api.gang_plan import HeldMember, Plan, PlannedClaim, stamp
from dragoon.gang.protocol.actions import Action, Note, WaitUntil
from dragoon.gang.protocol.facts import claim_of, damaged, problems_of
from dragoon.gang.protocol.model import GangView, Member, Settings
from dragoon.gang.protocol.rounds import candidates

RETURNING: Final = "Returning"
"""The reason of the note on a successor that waits for its place."""


class _Leaving(NamedTuple):
    """A member that went and whose claim is not free yet. until: for how long that is waited for."""

    member: HeldMember
    claim: str
    until: datetime


def places(plan: Plan | None) -> dict[str, str]:
    """The nodes of members that went, by slot: where their successors are tried first."""
    held = plan.held if plan is not None else ()
    return {one.slot: one.node for one in held if one.slot and one.vacated}


def awaited(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """Says what is waited for, and for how long; nothing where the next round need not wait.

    The planner is not asked meanwhile: its answer could be used when the place is free after all.
    """
    # The one that is waited for longest, of each node.
    leaving = {one.member.node: one for one in _leaving(view, plan, settings)}
    wanted = places(plan) if leaving else {}
    for pod in candidates(view) if leaving else ():
        found = leaving.get(wanted.get(pod.slot, ""))
        if found is not None and pod.ref.uid not in view.closed:
            return _waiting(view, pod, found)
    return ()


def _leaving(view: GangView, plan: Plan, settings: Settings) -> Iterator[_Leaving]:
    """Members that went and hold devices that a successor could use, the longest wait last."""
    span = timedelta(seconds=settings.return_wait)
    spoiled = damaged(view)
    found = (
        _Leaving(member, claim, datetime.fromisoformat(member.vacated) + span)
        for member in plan.held
        if member.vacated and member.node in view.nodes
        for claim in _still_held(view, member, spoiled)
    )
    yield from sorted((one for one in found if one.until > view.now), key=lambda one: one.until)


def _still_held(view: GangView, member: HeldMember, spoiled: AbstractSet[PoolId]) -> Iterator[str]:
    """The claims that go with a member and hold devices that can still be used."""
    for held in member.claims:
        claim = claim_of(view, held.name, held.uid)
        if held.made_by_user or claim is None or claim.allocation is None:
            continue
        as_planned = PlannedClaim(name=held.name, uid=held.uid, allocation=claim.allocation)
        if next(problems_of([as_planned], view.snapshot, spoiled), None) is None:
            yield held.name


def _waiting(view: GangView, pod: Member, found: _Leaving) -> tuple[Action, ...]:
    member = found.member
    message = (
        f"claim {found.claim} of pod {member.pod} to be freed on node {member.node}, the place of "
        f"pod {pod.ref.name}; from {stamp(found.until)} on another place will do"
    )
    left = (found.until - view.now).total_seconds()
    note = Note(RETURNING, message, warning=False, pod=pod.ref)
    return (note, WaitUntil(view.tick + left))
