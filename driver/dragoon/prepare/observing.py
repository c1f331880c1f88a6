"""What prepare tells the rest of the process: events for metrics, logs and Kubernetes events.

An observer is a plain callable and must not block or raise. Some events come from threads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoon.api.claims import ClaimRef
from dragoon.errors import DragoonError
from dragoon.prepare.journal import Entry


@dataclass(frozen=True, slots=True)
class Finished:
    """One call ended. error is None for a success.

    spans are seconds by part of the work: `api` reading the claim, `effects` all that was done on
    the node, journal included; the rest of `seconds` is waiting.
    """

    operation: str
    claim: ClaimRef
    seconds: float
    error: DragoonError | None = None
    spans: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A claim waits inside its call, for another claim or for something that fails for now."""

    claim: ClaimRef
    reason: DragoonError


@dataclass(frozen=True, slots=True)
class Repaired:
    """Something on the node was not as the journal says and was put right."""

    uid: str
    what: str


@dataclass(frozen=True, slots=True)
class Reported:
    """Something is wrong and is left for a person, or for the kubelet, to put right."""

    uid: str
    problem: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something in a claim has no effect here, though its author may have expected one."""

    claim: ClaimRef
    what: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A claim that is prepared here, as the API server has it now; told each minute."""

    entry: Entry
    claim: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StatusWritten:
    """The status of a claim was written; error is None for a success."""

    claim: ClaimRef
    error: DragoonError | None = None


@dataclass(frozen=True, slots=True)
class Swept:
    """Journal, node and API server were compared once, which took so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Counted:
    """How many claims are prepared on this node now, told after every change."""

    prepared: int


Event = (
    Finished | Waiting | Repaired | Reported | Ignored | Compared | StatusWritten | Swept | Counted
)
Observer = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The observer of nobody."""


class Complaints:
    """Tells of each problem once, and again only after it had gone."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._told: Mapping[str, str] = {}

    def are(self, problems: Mapping[str, str]) -> None:
        """The problems that there are now, by claim UID ("" for all of them)."""
        for uid, problem in problems.items():
            if self._told.get(uid) != problem:
                self._observer(Reported(uid, problem))
        self._told = dict(problems)
