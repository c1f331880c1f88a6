"""When the use of a claim's shares is worth telling in its status. Pure.

Use itself goes to metrics and to `dragoon usage`: a status that followed it would be written all
the time. The status tells only that use crossed 90 per cent of a limit, up or down, and that at
most once in five minutes for a claim.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.api.claims import ClaimRef
from dragoon.api.device_status import MEMORY_PRESSURE
from dragoon.gpu.model import PciAddress
from dragoon.prepare.enforcement.usage import ShareUsage
from dragoon.prepare.journal import Entry
from dragoon.prepare.status.outcome import Mark

PER_CENT: Final = 90
QUIET_SECONDS: Final = 300.0
ABOVE: Final = f"Above{PER_CENT}Percent"


@dataclass(frozen=True, slots=True)
class Use:
    """What a container uses of a card, or with a cap a pod (container ""); sizes are bytes."""

    card: PciAddress
    container: str
    limit: int
    used: int

    @property
    def is_high(self) -> bool:
        """Whether it is 90 per cent of its limit or more."""
        return self.limit > 0 and self.used * 100 >= self.limit * PER_CENT


@dataclass(frozen=True, slots=True)
class Told:
    """On which cards a claim's use was high when it was told last, and when: seconds of a clock."""

    cards: frozenset[PciAddress] = frozenset()
    at: float | None = None


def crossed(uses: Iterable[Use], told: Told, now: float) -> Told | None:
    """What to tell about a claim now; None for nothing."""
    high = frozenset(use.card for use in uses if use.is_high)
    too_soon = told.at is not None and now - told.at < QUIET_SECONDS
    return None if high == told.cards or too_soon else Told(high, now)


def marks(uses: Iterable[Use], told: Told) -> tuple[Mark, ...]:
    """The conditions that tell it: one for each card, about the container nearest its limit."""
    worst: dict[PciAddress, Use] = {}
    for use in uses:
        if use.card in told.cards and use.is_high:
            before = worst.get(use.card)
            if before is None or use.used * before.limit > before.used * use.limit:
                worst[use.card] = use
    return tuple(_mark(worst[card]) for card in sorted(worst))


def by_claim(
    usages: Iterable[ShareUsage], entries: Iterable[Entry]
) -> dict[ClaimRef, tuple[Use, ...]]:
    """The uses of each claim. entries: say which card a UUID or an address is."""
    cards: dict[str, PciAddress] = {}
    for entry in entries:
        for held in entry.devices:
            address = PciAddress.parse(held.address)
            cards |= {held.uuid: address, held.address: address}
    found: dict[ClaimRef, list[Use]] = {}
    for usage in usages:
        for claim in usage.claims:
            found.setdefault(claim, []).extend(_uses(usage, cards))
    return {claim: tuple(uses) for claim, uses in found.items()}


def _uses(usage: ShareUsage, cards: Mapping[str, PciAddress]) -> Iterator[Use]:
    for one in usage.cards:
        if one.card in cards and not one.suspicious:
            yield Use(cards[one.card], usage.container, one.limit, one.used)


def _mark(use: Use) -> Mark:
    who = f"container {use.container}" if use.container else "the pod"
    used, limit = use.used >> 20, use.limit >> 20
    message = f"{who} used {used} MiB of {limit} MiB when this was written"
    return Mark(MEMORY_PRESSURE, is_true=True, reason=ABOVE, message=message, card=use.card)
