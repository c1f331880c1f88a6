"""What health tells the rest of the process: events for metrics, logs and Kubernetes events.

An observer is a plain callable on the loop and must not block or raise.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dragoon.errors import DragoonError
from dragoon.gpu.condition import GpuEvent
from dragoon.gpu.model import PciAddress
from dragoon.health.verdict import CardHealth, Health, Verdict


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


def changes(before: Health, now: Health) -> Iterator[Changed]:
    """Of each card that has a verdict that it had not, or not any more one that it had."""
    for address, card in now.items():
        old = {v.identity: v for v in before.get(address, CardHealth(None)).verdicts}
        new = {v.identity: v for v in card.verdicts}
        came = tuple(v for key, v in new.items() if key not in old)
        went = tuple(v for key, v in old.items() if key not in new)
        if came or went:
            yield Changed(address, came, went, now)


def ignore(event: Event) -> None:
    """The observer of nobody."""
