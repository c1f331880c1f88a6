"""Planners that tell what they were asked, or take their time."""

import threading

from dragoon.allocator.gang.model import Budget, GangAsk, Outcome, PlacementSnapshot
from dragoon.allocator.gang.planning import plan
from dragoon.gang.planning import Planner


def counting(asked: list[str]) -> Planner:
    """The planner, and which gangs it was asked for."""

    def planner(snapshot: PlacementSnapshot, ask: GangAsk, budget: Budget) -> Outcome:
        asked.append(ask.name)
        return plan(snapshot, ask, budget)

    return planner


def held_up(asked: list[str], go_on: threading.Event) -> Planner:
    """The planner, which takes as long for the first gang as somebody wants."""
    plain = counting(asked)

    def planner(snapshot: PlacementSnapshot, ask: GangAsk, budget: Budget) -> Outcome:
        if not asked:
            asked.append(ask.name)
            assert go_on.wait(60)
        return plain(snapshot, ask, budget)

    return planner
