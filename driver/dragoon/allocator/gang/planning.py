"""`plan`: a gang and a snapshot to a placement of all its members, or why there is none."""

from typing import Final

from dragoon.allocator.allocate import random_share_id
from dragoon.allocator.gang import checking
from dragoon.allocator.gang.advice import no_room
from dragoon.allocator.gang.attempt import Case, Failed, attempt, sort_out
from dragoon.allocator.gang.model import (
    Budget,
    GangAsk,
    Outcome,
    PlacementSnapshot,
    Refused,
    SearchStopped,
)
from dragoon.allocator.gang.telling import standing
from dragoon.allocator.gang.verifying import verify_plan
from dragoon.allocator.result import ShareIds
from dragoon.allocator.selection import CostlySelectorsError, allowing
from dragoon.errors import DragoonError, InvalidInputError, UnsupportedError

_BUDGET: Final = Budget()


class PlanRejectedError(DragoonError):
    """The verifier found a plan wrong: a bug of the planner. Nothing may be done with the plan."""

    code = "PlanRejected"
    default_hint = "please report it, with the output of `dragoon dump`"


def plan(
    snapshot: PlacementSnapshot,
    ask: GangAsk,
    budget: Budget = _BUDGET,
    *,
    share_ids: ShareIds = random_share_id,
) -> Outcome:
    """Places the members of a gang that have no node yet.

    Raises PlanRejectedError, and nothing else: what is wrong with the ask is an outcome.
    """
    refused = checking.refusal(snapshot, ask)
    if refused is not None:
        return refused
    try:
        case = sort_out(ask)
    except (InvalidInputError, UnsupportedError) as error:
        return Refused(str(error))
    try:
        with allowing(budget.selectors):
            return _answer(snapshot, case, budget, share_ids)
    except CostlySelectorsError as error:
        return SearchStopped(0, f"the search stopped: {error.message}")


def _answer(
    snapshot: PlacementSnapshot, case: Case, budget: Budget, share_ids: ShareIds
) -> Outcome:
    ask = case.ask
    found = attempt(snapshot, case, budget.steps, share_ids)
    if not isinstance(found, Failed):
        problems = verify_plan(snapshot, ask, found)
        if problems:
            raise PlanRejectedError(f"gang {ask.name}: {'; '.join(problems[:3])}")
        return found
    if not found.short.sure:
        fitting = standing(snapshot, found.case, found.terrain).members(found.case.shapes)
        why = "; levels of its topology have more values than are looked at"
        return SearchStopped(
            found.steps,
            f"the search stopped after {found.steps} devices: {fitting} of {len(case.core)} members "
            f"fit, whether all do is not known{why if found.terrain.is_cut else ''}",
        )
    return no_room(snapshot, found, budget.advice)
