"""The status of a gang, but for its plan, and what has to be written of it. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from dragoon.allocator.gang.model import GangPlan, NoRoom, Outcome, Refused, SearchStopped
from dragoon.api.gang import Avoided, GangStatus, Members, Phase, wire
from dragoon.api.gang_plan import Step, stamp
from dragoon.gang.standing.conditions import conditions
from dragoon.gang.standing.sight import Sight, shortened

_COLUMN: Final = 200
_LINES: Final = 64
_LINE: Final = 2000
_NOTES: Final = 32
_NOTE: Final = 1024
_SHOWN: Final = 5
_AVOIDED_FOR: Final = timedelta(minutes=10)
_MOST_AVOIDED: Final = 256
_STEPS: Final = {
    Step.FENCE: Phase.FENCING,
    Step.WAIT: Phase.FENCING,
    Step.COMMIT: Phase.COMMITTING,
    Step.VERIFY: Phase.COMMITTING,
    Step.UNGATE: Phase.BINDING,
    Step.HOLD: Phase.BINDING,
    Step.RELEASE: Phase.RELEASING,
}
_FIXED: Final = {
    Phase.FENCING: "what kube-scheduler has in flight",
    Phase.COMMITTING: "allocations to be written",
}


def status_of(sight: Sight) -> GangStatus:
    """The status; the plan is the protocol's and taken over as it is."""
    old = sight.gang.status
    phase = _phase(sight)
    return GangStatus(
        observed_generation=sight.gang.generation,
        phase=phase,
        members=Members(
            minimum=sight.minimum,
            present=len(sight.alive),
            ready=sight.bound,
            finished=sum(member.has_ended for member in sight.members),
            summary=f"{sight.bound}/{sight.minimum}",
        ),
        waiting_for=shortened(_waiting_for(sight, phase), _COLUMN),
        explanation=_explanation(sight, phase),
        conditions=conditions(sight),
        missing_since=sight.missing_since,
        complete_since="" if sight.gathers else old.complete_since or stamp(sight.now),
        avoided=_avoided(sight),
        notes=_optimistic(sight),
        reservation=old.reservation,
        plan=sight.plan,
    )


def _avoided(sight: Sight) -> tuple[Avoided, ...]:
    """Nodes on which members failed to be bound in the last ten minutes.

    The rules that keep a member from a node may be none that plans know, so that the same node
    would be chosen again.
    """
    known = {one.node: one for one in sight.gang.status.avoided}
    kept = {
        node: one for node, one in known.items() if datetime.fromisoformat(one.until) > sight.now
    }
    until = stamp(sight.now + _AVOIDED_FOR)
    for node, reason in sight.failing.items():
        if node not in kept:
            kept[node] = Avoided(node=node, until=until, reason=shortened(reason, _NOTE))
    return tuple(kept[node] for node in sorted(kept))[:_MOST_AVOIDED]


def merge_patch(old: GangStatus, new: GangStatus) -> dict[str, Any]:
    """What makes the old status the new one, but for what is journaled; empty if nothing differs.

    A JSON merge patch (RFC 7386): what is not there any more is null.
    """
    before, after = wire(old), wire(new)
    for each in (before, after):
        each.pop("plan", None)
        each.pop("reservation", None)
    return _patch(before, after)


def is_urgent(old: GangStatus, new: GangStatus) -> bool:
    """Whether more has changed than numbers in texts: the phase, or what a condition says."""
    return old.phase != new.phase or _gist(old) != _gist(new)


def _gist(status: GangStatus) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in status.conditions}


def _patch(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            inner = _patch(old, new)
            if inner:
                patch[name] = inner
        elif old != new:
            patch[name] = new
    return patch


def _phase(sight: Sight) -> Phase:
    plan = sight.plan
    if sight.is_finished and (plan is None or not plan.members):
        return Phase.FINISHED
    if sight.stuck is not None:
        return Phase.STUCK
    if sight.is_satisfied:
        return Phase.RUNNING
    if plan is not None:
        return _STEPS[plan.step] if plan.members or not sight.gathers else Phase.GATHERING
    return _without_plan(sight)


def _without_plan(sight: Sight) -> Phase:
    if sight.wrong:
        return Phase.INVALID
    return Phase.GATHERING if sight.gathers else Phase.WAITING


def _waiting_for(sight: Sight, phase: Phase) -> str:
    texts = {
        Phase.INVALID: lambda: sight.wrong[0].message,
        Phase.GATHERING: lambda: f"{sight.missing(1)}{', overdue' if sight.is_late else ''}",
        Phase.WAITING: lambda: _no_plan(sight),
        Phase.BINDING: lambda: _unbound(sight),
        Phase.STUCK: lambda: "" if sight.stuck is None else sight.stuck.message,
        Phase.RELEASING: lambda: "" if sight.plan is None else f"taking back: {sight.plan.reason}",
    }
    return texts[phase]() if phase in texts else _FIXED.get(phase, "")


def _unbound(sight: Sight) -> str:
    if sight.returning is not None:
        return sight.returning.message
    left = sight.minimum - sight.bound - sight.succeeded
    return f"{max(1, left)} of {sight.minimum} pods to be bound"


def _no_plan(sight: Sight) -> str:
    match sight.outcome:
        case NoRoom() | SearchStopped() | Refused():
            return sight.outcome.message
    return "a plan"


def _explanation(sight: Sight, phase: Phase) -> tuple[str, ...]:
    if phase is Phase.INVALID:
        return _lines(fault.message for fault in sight.wrong)
    if phase is not Phase.WAITING:
        return ()
    more = [f"held by gang {name}" for name in sight.blockers]
    return reasons(sight.outcome, (*more, *sight.room))


def reasons(outcome: Outcome | None, more: Iterable[str] = ()) -> tuple[str, ...]:
    """Why there is no placement, line by line. more: what else is known about no room."""
    match outcome:
        case NoRoom() as found:
            lines = [found.message]
            lines += [
                f"{', '.join(one.members[:_SHOWN])}: {one.fitting} of {one.wanted} fit; {one.what}"
                for one in found.missing
            ]
            if found.change is not None:
                lines.append(f"it would fit: {found.change.text}")
            return _lines((*lines, *more, *found.explanation))
        case SearchStopped() as stopped:
            return _lines((stopped.message,))
        case Refused() as refused:
            return _lines((refused.message, *refused.instead.splitlines()))
    return ()


def _optimistic(sight: Sight) -> tuple[str, ...]:
    if isinstance(sight.outcome, GangPlan):
        texts = (f"not looked at when it was planned: {rule}" for rule in sight.outcome.optimistic)
        return tuple(shortened(text, _NOTE) for text in texts)[:_NOTES]
    return sight.gang.status.notes if sight.plan is not None else ()


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(shortened(text, _LINE) for text in texts if text)[:_LINES]
