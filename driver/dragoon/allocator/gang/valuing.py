"""What cards could still give typical pods: devices and what is held of them, see `fragments`.

It is worked out once for each state of a card; cards of different nodes that are alike share that,
whatever they are called.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoon.allocator.amounts import CapacityError, consumption, parsed
from dragoon.allocator.candidates import query_of
from dragoon.allocator.gang.fragments import CARD, CardState, Give, Typical, Yardstick
from dragoon.allocator.gang.mix import Demand, Kind, Mix
from dragoon.allocator.model import Counter, Device, DeviceClass, Facts
from dragoon.allocator.selection import published, selector
from dragoon.errors import DragoonError

_ONE_DEVICE: Final = frozenset(("uuid", "parentUUID", "pciBusID"))
"""Attributes that name one device: who reads them says nothing about what others will want."""

Takes = tuple[tuple[str, int, int], ...]
"""Of each capacity of a shared device: what a share takes, and how much there is."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A device as part of its card; devices that are alike are one part.

    size: in thousandths of the card. counters: what it takes, by their place on the card. limits:
    of its capacities, where it can be shared. takes: by the number of the typical pod, None where
    it cannot have the device.
    """

    size: int
    counters: tuple[tuple[int, int], ...]
    shared: bool
    limits: tuple[tuple[str, int], ...]
    takes: tuple[Takes | None, ...]


class Standing(NamedTuple):
    """How a card is used. held: by device. consumed: of each that is shared. left: of counters."""

    held: tuple[bool, ...]
    consumed: tuple[tuple[tuple[str, int], ...], ...]
    left: tuple[int, ...]


class Valuation:
    """What the mix of one cluster wants of devices. Mutable: it remembers.

    texts: of all selectors that are asked; nodes whose devices they tell apart are not alike.
    """

    def __init__(self, mix: Mix, classes: Mapping[str, DeviceClass]) -> None:
        asked = [(one, _selectors(one, classes)) for one in mix]
        self._asked = [(one, texts) for one, texts in asked if texts is not None]
        self.texts = tuple(dict.fromkeys(text for _, texts in self._asked for text in texts))
        self.yardstick = Yardstick(
            [Typical(one.weight, one.wish.count, one.amounts) for one, _ in self._asked]
        )
        self._reads = frozenset(
            read for text in self.texts for read in selector(text).program.reads or ()
        )
        self._names: dict[str, frozenset[str]] = {}
        self._takes: dict[Hashable, tuple[Takes | None, ...]] = {}
        self._parts: dict[Hashable, Part] = {}
        self._states: dict[Hashable, CardState] = {}

    def parts(self, devices: Sequence[Device], counters: Mapping[Counter, int]) -> tuple[Part, ...]:
        """The devices of a card, which has these counters."""
        places = {counter: place for place, counter in enumerate(counters)}
        limits = tuple(counters.values())
        return tuple(self._part(device, places, limits) for device in devices)

    def state(
        self, parts: tuple[Part, ...], limits: tuple[int, ...], group: int, standing: Standing
    ) -> CardState:
        """What a card can still give. limits: of its counters. group: of the cards linked to it."""
        key = parts, limits, group, standing
        known = self._states.get(key)
        if known is None:
            gives = tuple(
                _give(parts, standing, number) for number in range(len(self.yardstick.typical))
            )
            free = _free(parts, limits, standing)
            known = self._states[key] = CardState(free, gives, group)
        return known

    def _part(self, device: Device, places: Mapping[Counter, int], limits: tuple[int, ...]) -> Part:
        counters = tuple((places[counter], amount) for counter, amount in device.counters)
        facts = device.facts
        shared = tuple((name, one.limit) for name, one in facts.capacity) if facts.multiple else ()
        size = _mean([(amount, limits[place]) for place, amount in counters], len(limits))
        takes = self._taken(facts, size)
        key = size, counters, facts.multiple, shared, takes
        known = self._parts.get(key)
        if known is None:
            known = self._parts[key] = Part(size, counters, facts.multiple, shared, takes)
        return known

    def _taken(self, facts: Facts, size: int) -> tuple[Takes | None, ...]:
        names = self._names.get(facts.driver)
        if names is None:
            names = self._names[facts.driver] = published(self._reads, facts.driver)[0]
        read = tuple([one for one in facts.attributes if one[0] in names])
        key = facts.driver, facts.multiple, facts.unreadable, read, facts.capacity, size
        known = self._takes.get(key)
        if known is None:
            known = self._takes[key] = tuple(
                _takes(one, texts, facts, size) for one, texts in self._asked
            )
        return known


def _selectors(one: Demand, classes: Mapping[str, DeviceClass]) -> tuple[str, ...] | None:
    """The selectors of a wish; None where it says nothing about what others will want."""
    if isinstance(one.wish, Kind):
        return ()
    of_class = classes.get(one.wish.class_name)
    if of_class is None:
        return None
    query = query_of(one.wish, of_class.selectors)
    texts = (*query.of_class, *query.of_request)
    try:
        asked = [selector(text) for text in texts]
        if not all(one.is_cheap for one in asked):
            return None
        reads = [one.program.reads for one in asked]
    except DragoonError:
        return None
    if any(found is None or any(read[2] in _ONE_DEVICE for read in found) for found in reads):
        return None
    return texts


def _takes(one: Demand, texts: Iterable[str], facts: Facts, size: int) -> Takes | None:
    """What a pod with this wish takes of a device; None where it cannot have it."""
    if isinstance(one.wish, Kind):
        if facts.multiple is not one.wish.shared:
            return None
        if not facts.multiple:
            return () if one.wish.least <= size <= one.wish.most else None
        part = one.wish.most
        return tuple((name, held.limit * part // CARD, held.limit) for name, held in facts.capacity)
    try:
        # What others wish is cheap, and nothing that the plan of this gang has to pay for.
        if not all(selector(text).matches(facts, free=True) for text in texts):
            return None
        uses = consumption(facts.capacity, parsed(one.wish.capacity))
    except (DragoonError, CapacityError):
        return None
    return None if uses is None else tuple((use.name, use.taken, use.limit) for use in uses)


def _mean(amounts: Sequence[tuple[int, int]], count: int) -> int:
    """The mean of parts of some limits, in thousandths; everything where there are none."""
    if not count:
        return CARD
    return sum(CARD * amount // limit for amount, limit in amounts if limit) // count


def _free(parts: Sequence[Part], limits: Sequence[int], standing: Standing) -> int:
    """How much of a card is in no use, with what is left of shared devices in use."""
    rests = [
        part.size * _rest(part, consumed) // CARD
        for part, held, consumed in zip(parts, standing.held, standing.consumed, strict=True)
        if held and part.shared
    ]
    if limits:
        own = _mean(list(zip(standing.left, limits, strict=True)), len(limits))
    else:
        own = 0 if any(standing.held) else CARD
    return max(0, own) + sum(rests)


def _rest(part: Part, consumed: Iterable[tuple[str, int]]) -> int:
    """What is left of a shared device: of the capacity of which least is left."""
    used = dict(consumed)
    rests = (CARD * (all_ - used.get(name, 0)) // all_ for name, all_ in part.limits if all_)
    return max(0, min(rests, default=0))


def _give(parts: Sequence[Part], standing: Standing, number: int) -> Give:
    """The devices that a typical pod can have of a card, together: first fit, in order."""
    left = list(standing.left)
    devices = size = 0
    for part, held, consumed in zip(parts, standing.held, standing.consumed, strict=True):
        takes = part.takes[number]
        if takes is None or (held and not part.shared):
            continue
        if not held and any(left[place] < amount for place, amount in part.counters):
            continue
        count, each = _shares(takes, dict(consumed)) if part.shared else (1, CARD)
        if not count:
            continue
        devices += count
        size += part.size * count * each // CARD
        if not held:
            for place, amount in part.counters:
                left[place] -= amount
    return Give(devices, size)


def _shares(takes: Takes, used: Mapping[str, int]) -> tuple[int, int]:
    """How many shares a device has left, and how much of it each is."""
    telling = [one for one in takes if one[1] and one[2]]
    if not telling:
        return 0, 0
    count = min((limit - used.get(name, 0)) // taken for name, taken, limit in telling)
    return max(0, count), max(CARD * taken // limit for _, taken, limit in telling)
