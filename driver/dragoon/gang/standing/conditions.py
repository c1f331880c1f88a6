"""The conditions of a gang. Pure."""

from typing import Final

import msgspec

from dragoon.allocator.gang.model import NoRoom, Refused, SearchStopped
from dragoon.api.gang import Condition, ConditionStatus
from dragoon.api.gang_plan import Step, stamp
from dragoon.gang.standing.sight import STUCK, Sight, shortened

_YES: Final = "True"
_NO: Final = "False"
_UNKNOWN: Final = "Unknown"
_MESSAGE: Final = 4096
_HINTS: Final = 10


def conditions(sight: Sight) -> tuple[ConditionStatus, ...]:
    """All of them, each with the time of its last change."""
    found = [
        _valid(sight),
        _complete(sight),
        _ungated(sight),
        _placed(sight),
        _allocated(sight),
        _satisfied(sight),
    ]
    if sight.gang.status.reservation is not None:
        found.append(_condition(Condition.RESERVED, _YES, "Kept", sight.kept))
    if sight.provisioned is not None:
        found.append(_condition(Condition.PROVISIONED, *sight.provisioned))
    return tuple(_kept(sight, one) for one in found)


def _kept(sight: Sight, new: ConditionStatus) -> ConditionStatus:
    """With the time of the last change: another one only where the status is another one."""
    old = sight.gang.status.condition(new.type)
    same = old is not None and old.status == new.status
    return msgspec.structs.replace(
        new,
        message=shortened(new.message, _MESSAGE),
        last_transition_time=old.last_transition_time if old and same else stamp(sight.now),
        observed_generation=sight.gang.generation,
    )


def _condition(type_: Condition, status: str, reason: str, message: str) -> ConditionStatus:
    return ConditionStatus(
        type=type_, status=status, reason=reason, message=message, last_transition_time=""
    )


def _valid(sight: Sight) -> ConditionStatus:
    wrong = sight.wrong
    if not wrong:
        return _condition(Condition.VALID, _YES, "Valid", "")
    message = "; ".join(fault.message for fault in wrong)
    return _condition(Condition.VALID, _NO, wrong[0].reason, message)


def _complete(sight: Sight) -> ConditionStatus:
    if not sight.gathers:
        return _condition(Condition.COMPLETE, _YES, "AllThere", "")
    reason = "PodsMissing" if sight.pods_missing else "ClaimsMissing"
    if sight.waited_for:
        reason = sight.waited_for[0].reason
    message = f"missing: {sight.missing(_HINTS)}"
    if sight.is_late:
        reason = "TimedOut"
        message += f"; they are overdue (timeoutSeconds: {sight.gang.spec.timeout_seconds})"
    return _condition(Condition.COMPLETE, _NO, reason, message)


def _ungated(sight: Sight) -> ConditionStatus:
    if sight.ungated is None:
        return _condition(Condition.UNGATED, _NO, "AllGated", "")
    return _condition(Condition.UNGATED, _YES, "PodsWithoutGate", sight.ungated.message)


def _placed(sight: Sight) -> ConditionStatus:
    plan = sight.plan
    if plan is not None and plan.step is not Step.RELEASE and (plan.members or plan.held):
        nodes = len(plan.nodes)
        pods = len(plan.members) + len(plan.held)
        return _condition(
            Condition.PLACED, _YES, "Planned", f"{pods} pods on {nodes} node{'s' * (nodes != 1)}"
        )
    match sight.outcome:
        case NoRoom() as found:
            reason = "Never" if found.never and not found.grows else "NoRoom"
            return _condition(Condition.PLACED, _NO, reason, found.message)
        case SearchStopped() as stopped:
            return _condition(Condition.PLACED, _NO, "SearchStopped", stopped.message)
        case Refused() as refused:
            return _condition(Condition.PLACED, _NO, "Refused", refused.message)
    return _condition(Condition.PLACED, _UNKNOWN, "NotPlanned", "")


def _allocated(sight: Sight) -> ConditionStatus:
    plan = sight.plan
    if plan is None:
        return _condition(Condition.ALLOCATED, _NO, "NotPlanned", "")
    # The members of a later round do not change what holds of the ones before.
    done = plan.step in {Step.UNGATE, Step.HOLD} or bool(plan.held)
    if done:
        return _condition(Condition.ALLOCATED, _YES, "Allocated", "")
    return _condition(Condition.ALLOCATED, _NO, str(plan.step), "")


def _satisfied(sight: Sight) -> ConditionStatus:
    message = f"{sight.bound} bound, {sight.succeeded} succeeded, {sight.minimum} wanted"
    if sight.is_satisfied:
        return _condition(Condition.SATISFIED, _YES, "Bound", message)
    if sight.stuck is not None:
        return _condition(Condition.SATISFIED, _NO, STUCK, sight.stuck.message)
    reason = "Finished" if sight.is_finished else "NotBound"
    return _condition(Condition.SATISFIED, _NO, reason, message)
