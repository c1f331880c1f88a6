"""The planner's outcome for a Workload as a verdict, in the words of `dragoon explain`. Pure."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.allocator.gang.model import GangPlan, NoRoom, Outcome, Refused
from dragoon.api.gang_plan import PlannedClaim
from dragoon.gang.standing.sight import shortened
from dragoon.gang.standing.telling import reasons

_MESSAGE: Final = 4096
"""Kueue allows 32768 characters, and repeats them in events."""
_NODES: Final = 8


class Verdict(enum.StrEnum):
    """What is known of a Workload's placement."""

    FITS = "Fits"
    NO_ROOM = "NoRoom"
    """Now; or it is not known, or something is missing that may come."""
    NEVER = "Never"
    """Not even with everything released that others hold, and all nodes well."""
    WRONG = "Wrong"
    """The Workload itself: waiting does not help."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What the planner said. claims: what was promised. never_for: seconds of the same NEVER."""

    verdict: Verdict
    message: str
    claims: tuple[PlannedClaim, ...] = ()
    never_for: float = 0.0


def answer_of(outcome: Outcome) -> Answer:
    """The answer to an outcome."""
    match outcome:
        case GangPlan():
            return Answer(Verdict.FITS, _placed(outcome), _claims(outcome))
        case NoRoom(never=True):
            return Answer(Verdict.NEVER, _told(reasons(outcome)))
        case Refused():
            return Answer(Verdict.WRONG, _told(reasons(outcome)))
    return Answer(Verdict.NO_ROOM, _told(reasons(outcome)))


def _told(lines: Sequence[str]) -> str:
    return shortened("\n".join(lines), _MESSAGE)


def _placed(plan: GangPlan) -> str:
    nodes = sorted({one.node for one in plan.placements})
    more = f" and {len(nodes) - _NODES} more" if len(nodes) > _NODES else ""
    count = len(plan.placements)
    pods = "1 pod" if count == 1 else f"{count} pods"
    lines = [
        f"{pods} can be placed now, on {', '.join(nodes[:_NODES])}{more}",
        *(f"not looked at: {rule}" for rule in plan.optimistic),
    ]
    return _told(lines)


def _claims(plan: GangPlan) -> tuple[PlannedClaim, ...]:
    found: list[PlannedClaim] = []
    for placement in plan.placements:
        names = {
            claim["metadata"]["uid"]: claim["metadata"]["name"] for claim in placement.pod.claims
        }
        found += (
            PlannedClaim(name=names[uid], uid=uid, allocation=allocation)
            for uid, allocation in placement.allocations.items()
        )
    return tuple(found)
