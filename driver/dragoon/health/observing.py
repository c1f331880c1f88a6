"""What health tells the rest of the process: events for metrics, logs and Kubernetes events.

An observer is a plain callable on the loop and must not block or raise.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dragoon.errors import DragoonError
from dragoon.gpu.condition import GpuEvent
from dragoon.gpu.model import PciAddress
from dragoon.health.verdict import Health, Verdict


@dataclass(frozen=True, slots=True)
class Raised:
    """A card raised an event, several times in a row.

    known: it is of a card of this node. meaning: in words.
    """

    event: GpuEvent
    known: bool
    meaning: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Changed:
    """Verdicts of a card came or went; health: of all cards now."""

    address: PciAddress
    came: tuple[Verdict, ...]
    went: tuple[Verdict, ...]
    health: Health


@dataclass(frozen=True, slots=True)
class Trouble:
    """A part of watching does not work, or (error None) works again. what: which part."""

    what: str
    error: DragoonError | None


Event = Raised | Changed | Trouble
Observer = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The observer of nobody."""
