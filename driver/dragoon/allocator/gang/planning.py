"""`plan`: a gang and a snapshot to a placement of all its members, or the reason why there is none."""

from dragoon.allocator.allocate import random_share_id
from dragoon.allocator.gang import checking
from dragoon.allocator.gang.attempt import Failed, attempt, sort_out
from dragoon.allocator.gang.model import (
    Budget,
    GangAsk,
    NoRoom,
    Outcome,
    PlacementSnapshot,
    Refused,
    SearchStopped,
)
from dragoon.allocator.result import ShareIds
from dragoon.errors import InvalidInputError, UnsupportedError

_BUDGET = Budget()


def plan(
    snapshot: PlacementSnapshot,
    ask: GangAsk,
    budget: Budget = _BUDGET,
    *,
    share_ids: ShareIds = random_share_id,
) -> Outcome:
    """Places the members of a gang that have no node yet."""
    refused = checking.refusal(snapshot, ask)
    if refused is not None:
        return refused
    try:
        case = sort_out(ask)
    except (InvalidInputError, UnsupportedError) as error:
        return Refused(str(error))
    found = attempt(snapshot, case, budget.steps, share_ids)
    if not isinstance(found, Failed):
        return found
    if not found.short.sure:
        return SearchStopped(found.steps, "given up")
    return NoRoom("no room", never=False, fitting=found.short.fitting, wanted=case.wanted)
