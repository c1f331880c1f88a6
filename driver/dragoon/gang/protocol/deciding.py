"""The next actions for one gang: a pure function of what is seen now."""

from collections.abc import Callable, Mapping

from dragoon.api.gang_plan import Plan, Step
from dragoon.gang.protocol import committing, fencing, holding, undoing
from dragoon.gang.protocol.actions import Action, DeleteRule, Note
from dragoon.gang.protocol.facts import fences, missing_fences
from dragoon.gang.protocol.model import GangView, Settings
from dragoon.gang.protocol.rounds import advance, next_round

_UNDONE_BY_DELETION = frozenset((Step.FENCE, Step.WAIT, Step.COMMIT, Step.VERIFY))


def decide(view: GangView, settings: Settings) -> tuple[Action, ...]:
    """What to do now; nothing means: look again when something changes.

    Two calls with equal views give equal actions, and a call after any part of them was carried
    out gives the rest.
    """
    plan = view.plan
    if plan is None:
        return _without_plan(view)
    if not plan.is_known:
        note = f"status.plan has version {plan.version}, which this controller does not know"
        return (Note("UnknownPlan", note),)
    if view.deleting and plan.step in _UNDONE_BY_DELETION:
        return advance(view, plan, Step.RELEASE, "the Gang is being deleted")
    return _step(view, plan, settings)


def _without_plan(view: GangView) -> tuple[Action, ...]:
    # What was reserved before, and rules written late, by a leader that had lost its lease.
    reserved = () if view.deleting else view.reserved
    late = tuple(DeleteRule(rule) for pool, rule in fences(view).items() if pool not in reserved)
    if late or view.deleting:
        return late
    return missing_fences(view, reserved) or next_round(view)


def _step(view: GangView, plan: Plan, settings: Settings) -> tuple[Action, ...]:
    steps: Mapping[Step, Callable[[], tuple[Action, ...]]] = {
        Step.FENCE: lambda: fencing.fence(view, plan, settings),
        Step.WAIT: lambda: fencing.wait(view, plan, settings),
        Step.COMMIT: lambda: committing.commit(view, plan),
        Step.VERIFY: lambda: committing.verify(view, plan),
        Step.UNGATE: lambda: committing.ungate(view, plan),
        Step.RELEASE: lambda: undoing.release(view, plan),
        Step.HOLD: lambda: (
            undoing.dissolve(view, plan) if view.deleting else holding.hold(view, plan, settings)
        ),
    }
    return steps[plan.step]()
