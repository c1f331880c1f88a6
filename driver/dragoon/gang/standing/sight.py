"""What was seen of one gang, and what follows from it for every text. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from dragoon.allocator.gang.model import Outcome
from dragoon.api.gang import GangObject
from dragoon.api.gang_plan import Plan, stamp
from dragoon.gang.discovering.checking import Fault
from dragoon.gang.protocol.actions import Note
from dragoon.gang.protocol.model import Member
from dragoon.gang.protocol.returning import RETURNING

_SHOWN: Final = 5
"""Pods that a text names."""
STUCK: Final = "Stuck"
"""The reason of the protocol's note on a member that cannot be bound."""


@dataclass(frozen=True)
class Sight:
    """What was seen of one gang: without slots, what follows from it is found once.

    plan: as journaled. faults: of the whole gang. outcome: the planner's last answer, None where it
    was not asked. blockers: gangs that hold what would help. room: who of lower priority could make
    room, line by line. kept: what is kept for it while it waits, in words. provisioned: status,
    reason and message of what came of asking for nodes, None where nobody asked. hints: what is
    known of missing pods and claims, one text each. stuck_after: seconds for which kube-scheduler
    has to call a member unschedulable before its node is avoided.
    """

    gang: GangObject
    members: Sequence[Member]
    now: datetime
    plan: Plan | None = None
    faults: Sequence[Fault] = ()
    ungated: Fault | None = None
    outcome: Outcome | None = None
    notes: Sequence[Note] = ()
    blockers: Sequence[str] = ()
    room: Sequence[str] = ()
    kept: str = ""
    provisioned: tuple[str, str, str] | None = None
    hints: Sequence[str] = field(default=())
    stuck_after: float = 30.0

    @cached_property
    def alive(self) -> list[Member]:
        return [member for member in self.members if member.is_alive]

    @cached_property
    def succeeded(self) -> int:
        return sum(member.phase == "Succeeded" for member in self.members)

    @cached_property
    def bound(self) -> int:
        return sum(bool(member.node) for member in self.alive)

    @property
    def minimum(self) -> int:
        return self.gang.spec.size

    @property
    def pods_missing(self) -> int:
        """Members that there are too few of; those that have done their work are not missed."""
        return max(0, self.minimum - len(self.alive) - self.succeeded)

    @cached_property
    def incomplete(self) -> list[Member]:
        """Members of which a claim is missing."""
        return [member for member in self.alive if not member.complete]

    @property
    def is_satisfied(self) -> bool:
        """Whether the minimum is bound, or was and has done its work."""
        return self.bound > 0 and self.bound + self.succeeded >= self.minimum

    @property
    def is_finished(self) -> bool:
        return not self.alive and any(member.has_ended for member in self.members)

    @property
    def stuck(self) -> Note | None:
        return next((note for note in self.notes if note.reason == STUCK), None)

    @property
    def returning(self) -> Note | None:
        """A successor that waits for the place of the one that went."""
        return next((note for note in self.notes if note.reason == RETURNING), None)

    @cached_property
    def failing(self) -> dict[str, str]:
        """Nodes on which members fail to be bound, and what kube-scheduler says about it."""
        planned = {one.uid: one.node for one in self.plan.held} if self.plan is not None else {}
        limit = timedelta(seconds=self.stuck_after)
        return {
            planned[member.ref.uid]: member.unschedulable
            for member in self.alive
            if member.ref.uid in planned
            and not member.node
            and member.unschedulable_since is not None
            and self.now - member.unschedulable_since >= limit
        }

    @property
    def wrong(self) -> list[Fault]:
        """What a person has to change."""
        return [fault for fault in self.faults if not fault.waits]

    @property
    def waited_for(self) -> list[Fault]:
        """What has to be there before it is known how many members there are."""
        return [fault for fault in self.faults if fault.waits]

    @cached_property
    def gathers(self) -> bool:
        """Whether pods or claims are missing, or what says how many there have to be."""
        missing = self.pods_missing or self.incomplete or self.waited_for
        return bool(missing) and not self.is_finished

    @property
    def missing_since(self) -> str:
        """Since when (RFC 3339), empty where nothing is missing."""
        return (self.gang.status.missing_since or stamp(self.now)) if self.gathers else ""

    @property
    def deadline(self) -> datetime | None:
        """When what is missing is overdue, None where nothing is missing."""
        if not self.gathers:
            return None
        return datetime.fromisoformat(self.missing_since) + timedelta(
            seconds=self.gang.spec.timeout_seconds
        )

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and self.now >= self.deadline

    def missing(self, most_hints: int) -> str:
        """How many pods or claims are missing, and what is known about why."""
        if self.waited_for:
            return self.waited_for[0].message
        hints = "".join(f"; {hint}" for hint in self.hints[:most_hints])
        if self.pods_missing:
            return f"{self.pods_missing} of {self.minimum} pods{hints}"
        return f"claims of {_named(self.incomplete)}{hints}"


def _named(members: Sequence[Member]) -> str:
    shown = ", ".join(member.ref.name for member in members[:_SHOWN])
    more = f" and {len(members) - _SHOWN} more" if len(members) > _SHOWN else ""
    return f"pod{'s' if len(members) > 1 else ''} {shown}{more}"


def shortened(text: str, limit: int) -> str:
    """The text, cut to the length that the CRD allows."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
