"""Members that kube-scheduler cannot bind where they are pinned. Pure.

Judged by what kube-scheduler says in the pod's condition, never by a timer: under load at default
qps 26 s from ungating to binding are normal.
"""

from datetime import datetime, timedelta

import msgspec

from dragoon.api.gang_plan import HeldMember, Plan, stamp
from dragoon.gang.protocol.actions import Action, Journal, Note, RequestPlan, WaitUntil
from dragoon.gang.protocol.facts import by_uid
from dragoon.gang.protocol.model import GangView, Member, OnStuck, Settings

Stuck = tuple[HeldMember, Member]


def stuck(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """What is done about members that cannot be bound, one at a time."""
    waiting = _unschedulable(view, plan)
    if not waiting:
        return ()
    late = [one for one in waiting if _since(view, one[1]) >= _span(settings.stuck_after)]
    if not late:
        longest = max(_since(view, pod) for _, pod in waiting)
        left = _span(settings.stuck_after) - longest
        return (WaitUntil(view.tick + max(0.0, left.total_seconds())),)
    member, pod = late[0]
    note = _note(member, pod)
    return _repair(view, plan, late, settings) or _release(view, plan, settings) or (note,)


def _unschedulable(view: GangView, plan: Plan) -> list[Stuck]:
    pods = by_uid(view)
    return [
        (member, pod)
        for member in plan.held
        if (pod := pods.get(member.uid)) is not None
        and pod.is_alive
        and not pod.node
        and pod.unschedulable
    ]


def _since(view: GangView, pod: Member) -> timedelta:
    since: datetime = pod.unschedulable_since or view.now
    return view.now - since


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _note(member: HeldMember, pod: Member) -> Note:
    owner = "" if pod.owner else "; it has no owner that would make it again, so it is left alone"
    message = f"pod {member.pod} cannot be bound on node {member.node}: {pod.unschedulable}{owner}"
    return Note("Stuck", message, pod=pod.ref)


def _repair(
    view: GangView, plan: Plan, late: list[Stuck], settings: Settings
) -> tuple[Action, ...]:
    """Marks one member to be evicted, if the planner has room for it on another node."""
    owned = [(member, pod) for member, pod in late if pod.owner is not None]
    allowed = settings.repair and plan.repairs < settings.most_repairs
    if not owned or not allowed or any(member.vacated for member in plan.held):
        return ()
    if plan.repaired:
        again = datetime.fromisoformat(plan.repaired) + _span(settings.repair_pause)
        if again > view.now:
            return (WaitUntil(view.tick + (again - view.now).total_seconds()),)
    member, pod = owned[0]
    proposal = view.proposal
    if proposal is None or proposal.asked != frozenset((pod.ref.uid,)):
        return (RequestPlan((pod.ref.uid,), spare=True),)
    if proposal.refusal:
        return ()
    now = stamp(view.now)
    marked = tuple(
        msgspec.structs.replace(one, vacated=now) if one is member else one for one in plan.held
    )
    changed = msgspec.structs.replace(plan, held=marked, repaired=now, repairs=plan.repairs + 1)
    return (Journal(view.gang, changed),)


def _release(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    """Journals that the Job is suspended: only where no member runs, and policy says so."""
    job = view.owner
    if settings.on_stuck is not OnStuck.RELEASE or job is None or view.suspended:
        return ()
    if any(member.node and member.is_alive for member in view.members):
        return ()
    return (Journal(view.gang, msgspec.structs.replace(plan, suspended=job.uid)),)
