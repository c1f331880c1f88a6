"""What the devices of one node are worth to pods that are to come, under any use of them."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.allocator.candidates import Candidate
from dragoon.allocator.gang.fragments import CardState, Value
from dragoon.allocator.gang.valuing import Part, Standing, Valuation
from dragoon.allocator.model import Counter, Device, PoolId
from dragoon.allocator.pools import Counters
from dragoon.allocator.usage import UNUSED, PoolUsage

Usage = Mapping[PoolId, PoolUsage]
IMPOSSIBLE: Final = 2**62
"""The loss of what cannot be had: it comes last."""


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """Devices of one pool that exclude each other, or one device. group: equal for linked cards.

    counters: those that they share.
    """

    pool: PoolId
    devices: tuple[Device, ...]
    counters: tuple[tuple[Counter, int], ...]
    group: Hashable


class Worth:
    """The cards of a node under one valuation. Mutable: it remembers how they are made up.

    counters: by pool, as PoolUsage counts them.
    """

    def __init__(
        self, cards: Iterable[Card], counters: Mapping[PoolId, Counters], valuation: Valuation
    ) -> None:
        self._valuation = valuation
        self._counters = counters
        self._cards = tuple(cards)
        self._parts: list[tuple[Part, ...]] = [
            valuation.parts(one.devices, dict(one.counters)) for one in self._cards
        ]
        self._limits = [tuple(amount for _, amount in one.counters) for one in self._cards]
        numbers: dict[Hashable, int] = {}
        self._groups = [numbers.setdefault(one.group, len(numbers)) for one in self._cards]
        self._at = {
            device: (index, place)
            for index, one in enumerate(self._cards)
            for place, device in enumerate(one.devices)
        }

    def value(self, usage: Usage, left: Mapping[str, int] | None = None) -> Value:
        """The value of the node. left: of its resources, None for plenty."""
        standings = [self._standing(index, usage) for index in range(len(self._cards))]
        return self._valuation.yardstick.value(self._states(standings), left)

    def losses(self, found: Sequence[Candidate], count: int, usage: Usage) -> list[int]:
        """What would be lost of the node with each of the candidates in use, cpu and memory apart.

        count: devices that are wanted together: as many like it, of linked cards, are gone with it.
        """
        standings = [self._standing(index, usage) for index in range(len(self._cards))]
        states = self._states(standings)
        known: dict[Hashable, int] = {}
        losses: list[int] = []
        for candidate in found:
            index, place = self._at[candidate.device]
            taken = tuple((use.name, use.taken) for use in candidate.uses)
            key = states[index], place, taken
            if key not in known:
                known[key] = self._loss(states, standings, (index, place), taken, count)
            losses.append(known[key])
        return losses

    def _loss(
        self,
        states: Sequence[CardState],
        standings: Sequence[Standing],
        at: tuple[int, int],
        taken: tuple[tuple[str, int], ...],
        count: int,
    ) -> int:
        index, place = at
        after = _with(self._parts[index][place], standings[index], place, taken)
        if after is None:
            return IMPOSSIBLE
        changed = list(standings)
        changed[index] = after
        others = (other for other, state in enumerate(states) if state is states[index])
        alike = [other for other in others if other != index]
        for other in alike[: count - 1]:
            changed[other] = after
        return self._valuation.yardstick.value(self._states(changed)).loss

    def _states(self, standings: Sequence[Standing]) -> tuple[CardState, ...]:
        state = self._valuation.state
        return tuple(map(state, self._parts, self._limits, self._groups, standings))

    def _standing(self, index: int, usage: Usage) -> Standing:
        card = self._cards[index]
        of_pool = usage.get(card.pool, UNUSED)
        counters = self._counters.get(card.pool)
        left = of_pool.slack(counters).left if counters is not None and card.counters else {}
        return Standing(
            tuple(of_pool.is_allocated(one.name) for one in card.devices),
            tuple(
                tuple(of_pool.consumed(one.name).items()) if one.name in of_pool.shared else ()
                for one in card.devices
            ),
            tuple(left.get(counter, 0) for counter, _ in card.counters),
        )


def _with(
    part: Part, standing: Standing, place: int, taken: tuple[tuple[str, int], ...]
) -> Standing | None:
    """The standing with one more device or share in use, None where it cannot be."""
    held, consumed, left = list(standing.held), list(standing.consumed), list(standing.left)
    if held[place] and not part.shared:
        return None
    if not held[place]:
        for counter, amount in part.counters:
            left[counter] -= amount
        if any(amount < 0 for amount in left):
            return None
    if part.shared:
        used = dict(consumed[place])
        for name, amount in taken:
            used[name] = used.get(name, 0) + amount
        consumed[place] = tuple(sorted(used.items()))
    held[place] = True
    return Standing(tuple(held), tuple(consumed), tuple(left))
