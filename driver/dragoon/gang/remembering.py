"""What the parts of a look share: the gang as discovery has it, pauses, memory, whom to tell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dragoon.allocator.gang.model import Outcome
from dragoon.api.gang import GangObject
from dragoon.errors import DragoonError
from dragoon.gang.discovering.checking import Fault
from dragoon.gang.protocol.actions import Note
from dragoon.gang.protocol.model import Proposal, Wait
from dragoon.gang.records import PodRecord
from dragoon.kube.backoff import Backoff


class Reporter(Protocol):
    """Who is told what happened; metrics and events are behind it."""

    def planned(self, outcome: Outcome, seconds: float) -> None:
        """The planner answered."""
        ...

    def noted(self, gang: GangObject, note: Note) -> None:
        """The protocol has something new to say."""
        ...

    def failed(self, error: DragoonError) -> None:
        """A write failed."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """Pauses, in seconds.

    replan: between two plans of a gang that found no room, at least. status: between two writes of
    a status in which only texts differ. conflict: until what was decided on something old is looked
    at again.
    """

    replan: float = 1.0
    status: float = 5.0
    conflict: float = 0.2
    served: float = 30.0


@dataclass(slots=True)
class Memory:
    """What this process remembers of one gang; all of it can be lost.

    faulty: the planner was not asked because of a fault.
    """

    wait: Wait | None = None
    proposal: Proposal | None = None
    outcome: Outcome | None = None
    planned_at: float = 0.0
    planned_for: float = 0.0
    room: int = -1
    unsettled: bool = False
    faulty: bool = False
    told_at: float = 0.0
    notes: frozenset[Note] = frozenset()
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, limit=30.0))


@dataclass(frozen=True, slots=True)
class Case:
    """One gang as discovery has it. faults: why it is not planned, none if it may be."""

    gang: GangObject
    pods: Sequence[PodRecord]
    faults: Sequence[Fault] = ()
    ungated: Fault | None = None
    hints: Sequence[str] = ()
