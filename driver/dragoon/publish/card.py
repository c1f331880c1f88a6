"""A working card with all that its devices are made from."""

from collections.abc import Callable
from dataclasses import dataclass

from dragoon.api.finding import Finding
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.publish.attributes import Facts
from dragoon.publish.counters import Ledger, Place
from dragoon.publish.device import Device, Taint


@dataclass(frozen=True, slots=True)
class Division:
    """What is known of a card that has MIG. foreign: instances that somebody else made."""

    card: MigCard
    foreign: tuple[MigInstance, ...] = ()

    @property
    def places(self) -> tuple[Place, ...]:
        """Every profile at every placement."""
        return tuple((p, place) for p in self.card.profiles for place in p.placements)

    @property
    def width(self) -> int:
        """Memory slices of the card, as far as anything shows them."""
        seen = [place for _, place in self.places] + [one.placement for one in self.foreign]
        return max((place.start + place.size for place in seen), default=0)


@dataclass(frozen=True, slots=True)
class Card:
    """The card, and what is decided about it.

    places: the MIG placements to be published; foreign: MIG instances of somebody else, published
    as they are. ledger: None where no two devices of the card exclude each other.
    """

    facts: Facts
    taints: tuple[Taint, ...] = ()
    places: tuple[Place, ...] = ()
    foreign: tuple[MigInstance, ...] = ()
    ledger: Ledger | None = None


Made = tuple[tuple[Device, ...], tuple[Finding, ...]]
"""Devices, and what had to be left out of them."""

Builder = Callable[[Card], Made]
"""Makes the devices of one form of a card."""
