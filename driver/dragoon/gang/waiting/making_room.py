"""Which holders of lower priority would be enough, and how that is told. Pure.

Nobody is evicted by the controller: a person, or `dragoon gangs make-room --evict`, decides.
"""

from collections.abc import Sequence
from typing import Final

from dragoon.allocator.gang.model import GangAsk, PlacementSnapshot
from dragoon.allocator.gang.vacating import TRIES, Occupant, Vacated, vacate

_NAMED: Final = 8


def make_room(
    snapshot: PlacementSnapshot,
    ask: GangAsk,
    occupants: Sequence[Occupant],
    *,
    priority: int,
    tries: int = TRIES,
) -> Vacated | None:
    """Who of lower priority has to leave, so that the gang fits. None: that is not enough.

    Holders of devices are looked at first; pods that only take cpu or memory where those are not
    enough.
    """
    lower = [one for one in occupants if one.priority < priority]
    if not lower:
        return None
    holders = [one for one in lower if one.claims]
    found = vacate(snapshot, ask, holders, tries=tries)
    if found is None and len(holders) < len(lower):
        found = vacate(snapshot, ask, lower, tries=tries)
    return found


def told(found: Vacated) -> tuple[str, ...]:
    """The answer in words, line by line."""
    pods = len(found.pods)
    those = "1 pod" if pods == 1 else f"{pods} pods"
    fewer = "" if found.least else "; fewer may be enough, the search was stopped"
    head = (
        f"it fits when {those} of lower priority (at most {found.priority}) "
        f"{'leaves' if pods == 1 else 'leave'}{fewer}"
    )
    lines = [_line(one) for one in found.occupants[:_NAMED]]
    more = len(found.occupants) - _NAMED
    return (head, *lines, *([f"and {more} more"] if more > 0 else []))


def _line(one: Occupant) -> str:
    pods = "" if len(one.pods) == 1 else f", {len(one.pods)} pods"
    return f"{one.name} (priority {one.priority}{pods})"
