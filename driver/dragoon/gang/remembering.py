"""What the parts of a look share: the gang as discovery has it, pauses, memory, whom to tell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dragoon.allocator.gang.concern import Concern
from dragoon.allocator.gang.model import NoRoom, Outcome
from dragoon.allocator.gang.vacating import Vacated
from dragoon.api.gang import GangObject, Reservation
from dragoon.errors import DragoonError
from dragoon.gang.discovering.checking import Fault
from dragoon.gang.protocol.actions import Note
from dragoon.gang.protocol.model import Proposal, Wait
from dragoon.gang.records import PodRecord
from dragoon.gang.waiting.ranking import Rank
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

    replan: between two plans of a gang that found no room, at least; it is doubled with each plan
    that finds none, up to slowest. yields: for how long a gang that is to be planned lets better ones
    look again at what becomes free meanwhile. advice: between two searches for who could make room. status:
    between two writes of a status in which only texts differ. conflict: until what was decided on
    something old is looked at again.
    """

    replan: float = 1.0
    slowest: float = 15.0
    yields: float = 3.0
    advice: float = 30.0
    status: float = 5.0
    conflict: float = 0.2
    served: float = 30.0


@dataclass(slots=True)
class Memory:
    """What this process remembers of one gang; all of it can be lost.

    woken: something that concerns the gang has changed since the planner began; woken_at: since
    when it is to be planned, for that or because it is new; room_at: when something that concerns it
    became free last. rank: its place in the queue. asked_at: how old is what the planner saw last;
    planned_at: when it answered. concern: None where everything concerns it. refusals: those of the
    planner in a row, None after another answer; pause: until it may be asked again, in seconds.
    retry_at: when it is asked again in any case. vacated: who could make room; advised_at: when that
    was asked for. displaced: devices may be kept for the gang, in place of what is kept for the gangs
    of these UIDs, None where they may not; reservation: those, to be journaled; in_vain_at: when there
    were none. faulty: the planner was not asked because of a fault.
    """

    wait: Wait | None = None
    proposal: Proposal | None = None
    outcome: Outcome | None = None
    asked_at: float = 0.0
    planned_at: float = 0.0
    planned_for: float = 0.0
    woken: bool = False
    woken_at: float | None = None
    room_at: float = 0.0
    rank: Rank | None = None
    concern: Concern | None = None
    refusals: Backoff | None = None
    pause: float = 0.0
    retry_at: float | None = None
    vacated: Vacated | None = None
    advised_at: float | None = None
    displaced: frozenset[str] | None = None
    reservation: Reservation | None = None
    in_vain_at: float | None = None
    unsettled: bool = False
    faulty: bool = False
    told_at: float = 0.0
    notes: frozenset[Note] = frozenset()
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, limit=30.0))

    @property
    def is_refused(self) -> bool:
        """Whether the planner's last answer was that there is no room."""
        return self.proposal is not None and bool(self.proposal.refusal)

    @property
    def has_no_room(self) -> bool:
        """Whether the planner's last answer was just that; nothing is wrong with the gang."""
        return self.is_refused and isinstance(self.outcome, NoRoom) and not self.faulty

    @property
    def is_hopeless(self) -> bool:
        """Whether not even an empty cluster had room."""
        return isinstance(self.outcome, NoRoom) and self.outcome.never


@dataclass(frozen=True, slots=True)
class Case:
    """One gang as discovery has it, and as it is seen since.

    faults: why it is not planned, none if it may be.
    """

    gang: GangObject
    pods: Sequence[PodRecord]
    faults: Sequence[Fault] = ()
    ungated: Fault | None = None
    hints: Sequence[str] = ()
