"""The counters of one card: as few as keep its forms apart. Pure.

A card that is published in more than one form has one counter set. The whole GPU and the shared
GPU take all of it. A MIG placement takes its memory slices, one counter each, so that two
placements exclude each other exactly if they overlap (case C19). Limits that slices do not show
get a counter of their own where the profiles on offer need it: media engines, and fewer instances
than there are places. `memory` is there to be charged by quota systems, in bytes: a placement
takes its slices' part, so it never runs out before the slices do.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from dragoon.errors import InvalidInputError
from dragoon.gpu.mig import MigInstance
from dragoon.gpu.mig_names import ProfileName
from dragoon.gpu.model import MigProfile, Placement
from dragoon.publish.device import CounterSet

_GPU: Final = "gpu"
_MEMORY: Final = "memory"
_MEDIA: Final = "media"
_EXTENSIONS: Final = "media-extensions"

Place = tuple[MigProfile, Placement]


class _Engines(enum.Enum):
    """Which media engines of the card an instance gets, as its profile's suffix says."""

    NONE = "-me"
    SOME = ""
    EXTENSIONS = "+me"
    ALL = "+me.all"


@dataclass(frozen=True, slots=True)
class Ledger:
    """What one card has to give, and what each MIG placement on offer takes of it."""

    total: CounterSet
    placements: Mapping[tuple[str, int], CounterSet]

    def of(self, profile: MigProfile, placement: Placement) -> CounterSet:
        """What an instance there takes; it is one of those that the ledger was made for."""
        return self.placements[profile.name, placement.start]


def ledger(
    name: str,
    memory_bytes: int | None,
    places: Sequence[Place] = (),
    *,
    width: int = 0,
    foreign: Sequence[MigInstance] = (),
) -> Ledger:
    """The counters of a card whose set has this name.

    places: the MIG placements on offer, all of them possible `beside` the foreign instances, which
    somebody else made and which are used for good. width: the memory slices of the card.
    """
    memory = max(memory_bytes or 0, 0)
    total = {_MEMORY: memory} if memory else {_GPU: 1}
    takes: dict[tuple[str, int], dict[str, int]] = {
        (profile.name, place.start): {_MEMORY: memory * place.size // width} if memory else {}
        for profile, place in places
    }
    if memory and foreign:
        total[_MEMORY] -= sum(memory * one.placement.size // width for one in foreign)
    for number in _telling_slices(places):
        total[f"slice-{number}"] = 1
        for profile, place in places:
            if _covers(place, number):
                takes[profile.name, place.start][f"slice-{number}"] = 1
    for counter, limit, users in _limits(places, width, foreign):
        total[counter] = limit
        for (profile_name, _), taken in takes.items():
            if profile_name in users:
                taken[counter] = users[profile_name]
    placements = {key: CounterSet(name, taken) for key, taken in takes.items()}
    return Ledger(CounterSet(name, total), placements)


def beside(places: Iterable[Place], foreign: Sequence[MigInstance]) -> tuple[Place, ...]:
    """The placements at which an instance can still be made while the foreign ones are there."""
    return tuple(
        (profile, placement)
        for profile, placement in places
        if not any(one.placement.overlaps(placement) for one in foreign)
        and not any(_exclude(profile, one.profile) for one in foreign)
        and sum(one.profile.name == profile.name for one in foreign) < profile.instances
    )


def _telling_slices(places: Sequence[Place]) -> tuple[int, ...]:
    """The memory slices that need a counter.

    One that is only taken together with another says nothing that the other does not: the eighth
    slice of an A100 goes to nobody who does not take the seventh.
    """
    width = max((place.start + place.size for _, place in places), default=0)
    users = [
        frozenset(at for at, (_, place) in enumerate(places) if _covers(place, number))
        for number in range(width)
    ]
    return tuple(
        number
        for number, mine in enumerate(users)
        if not any(
            mine < theirs or (mine == theirs and other < number)
            for other, theirs in enumerate(users)
        )
    )


def _limits(
    places: Sequence[Place], width: int, foreign: Sequence[MigInstance]
) -> Iterator[tuple[str, int, Mapping[str, int]]]:
    """Counters besides slices: name, amount, and what an instance of each profile takes of it."""
    profiles = tuple(dict.fromkeys(profile for profile, _ in places))
    engines = {profile.name: _engines(profile) for profile in profiles}
    if _Engines.ALL in engines.values():
        users = {
            name: width if kind is _Engines.ALL else 1
            for name, kind in engines.items()
            if kind is not _Engines.NONE
        }
        yield _MEDIA, width, users
    extended = [place for profile, place in places if engines[profile.name] is _Engines.EXTENSIONS]
    if any(not one.overlaps(other) for one, other in combinations(extended, 2)):
        names = [name for name, kind in engines.items() if kind is _Engines.EXTENSIONS]
        yield _EXTENSIONS, 1, dict.fromkeys(names, 1)
    for profile in profiles:
        if engines[profile.name] in {_Engines.ALL, _Engines.EXTENSIONS}:
            continue
        left = profile.instances - sum(one.profile.name == profile.name for one in foreign)
        if _most(place for other, place in places if other is profile) > left:
            yield f"instances-{profile.number}", left, {profile.name: 1}


def _most(places: Iterable[Placement]) -> int:
    """How many of these placements, all of one size, can be taken together."""
    count, end = 0, 0
    for place in sorted(places):
        if place.start >= end:
            count, end = count + 1, place.start + place.size
    return count


def _covers(place: Placement, number: int) -> bool:
    return place.start <= number < place.start + place.size


def _engines(profile: MigProfile) -> _Engines:
    """A suffix that says nothing about media engines, or a name of another kind, gets some."""
    try:
        parts = ProfileName.parse(profile.name).parts
    except InvalidInputError:
        return _Engines.SOME
    return next((kind for kind in _Engines if kind.value in parts), _Engines.SOME)


def _exclude(one: MigProfile, other: MigProfile) -> bool:
    """Whether their media engines keep two instances apart wherever they lie."""
    kinds = {_engines(one), _engines(other)}
    if _Engines.ALL in kinds:
        return kinds != {_Engines.ALL, _Engines.NONE}
    return kinds == {_Engines.EXTENSIONS}
