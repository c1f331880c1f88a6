"""Which cards are missing from a look, and where they are. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dragoon.gpu.model import Gpu, LostGpu, PciAddress
from dragoon.gpu.pci import BusCard


def told_apart(cards: Iterable[Gpu | LostGpu]) -> tuple[tuple[Gpu, ...], tuple[LostGpu, ...]]:
    """Sorts cards into usable and lost ones, at most one card per PCI address.

    Two cards at one address cannot be told apart, and their devices would have one name: neither
    is usable, and what is left of them is one lost card.
    """
    cards = tuple(cards)
    seats = Counter(card.address for card in cards if card.address is not None)
    doubled = {address for address, times in seats.items() if times > 1}
    gpus = tuple(c for c in cards if isinstance(c, Gpu) and c.address not in doubled)
    lost = tuple(c for c in cards if isinstance(c, LostGpu) and c.address not in doubled)
    clashes = tuple(
        LostGpu(address, f"{seats[address]} cards answer at this address")
        for address in sorted(doubled)
    )
    return tuple(sorted(gpus, key=lambda gpu: gpu.address)), lost + clashes


def locate(
    gpus: Sequence[Gpu],
    silent: Sequence[LostGpu],
    bus: Sequence[BusCard],
    known: Mapping[PciAddress, str],
) -> tuple[LostGpu, ...]:
    """Every lost card once, with its address where anything tells it, and its UUID where known.

    gpus answer; silent ones were listed by NVML and failed; bus is what the kernel lists; known
    are the UUIDs of cards that answered earlier in this process, by address. A card that another
    kernel driver has taken is not lost. Ordered by address, nameless cards last.
    """
    on_bus = {card.address: card for card in bus}
    taken = {gpu.address for gpu in gpus}
    taken |= {card.address for card in silent if card.address is not None}
    missing = [address for address in _expected(on_bus, known) if address not in taken]
    spare = [card.address for card in bus if card.kernel_driver is None and not card.listed]
    nameless = [card for card in silent if card.address is None]
    seats = missing + [address for address in spare if address not in taken | set(missing)]
    found = [replace(card, address=seat) for card, seat in zip(nameless, seats, strict=False)]
    found += nameless[len(seats) :]
    found += [LostGpu(seat, _why_missing(on_bus.get(seat))) for seat in missing[len(nameless) :]]
    found += [card for card in silent if card.address is not None]
    identified = [
        replace(card, uuid=known.get(card.address)) if card.address and not card.uuid else card
        for card in found
    ]
    return tuple(sorted(identified, key=_order))


def _expected(
    on_bus: Mapping[PciAddress, BusCard], known: Mapping[PciAddress, str]
) -> list[PciAddress]:
    ours = {address for address, card in on_bus.items() if card.ours}
    before = {a for a in known if a not in on_bus or not on_bus[a].foreign}
    return sorted(ours | before)


def _why_missing(card: BusCard | None) -> str:
    if card is None:
        return "no longer on the PCI bus"
    return "on the PCI bus, but not listed by the driver library"


def _order(card: LostGpu) -> tuple[bool, PciAddress]:
    return card.address is None, card.address or PciAddress(0, 0, 0)
