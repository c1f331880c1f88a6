"""Which devices of a node are tried first: those whose loss is felt least.

All orders give the same yes or no; the order only decides between right answers. What counts first
is what is lost to pods that are to come (`worth`). Where that is equal, whole GPUs come from the
smallest NVLink group that has enough; parts of a card from a card that is in use already, and there
from where the largest placements that are left are not hurt.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dragoon.allocator.candidates import Candidate
from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.gang.valuing import Valuation
from dragoon.allocator.gang.worth import Card, Usage, Worth
from dragoon.allocator.model import Counter, Device, Facts, PoolId
from dragoon.allocator.pools import Pool
from dragoon.allocator.usage import UNUSED, PoolUsage

LINKS: Final = ("nvlinkDomain", "fabricClique")
"""Attributes, in a driver's own domain, whose equal values mean fast links."""

_CardKey = tuple[PoolId, Any]


def link_of(facts: Facts, name: str) -> Any:
    """The value of a link attribute, None without it."""
    found = attribute_of(facts, f"{facts.driver}/{name}")
    return None if found is None or not found[0] else found[1]


class Cards:
    """How the devices of a node's pools hang together. Mutable: it remembers what it worked out.

    Devices that take counters of the same sets are one card, others are a card each. Cards with one
    NVLink domain are a group.
    """

    def __init__(self, pools: Iterable[Pool]) -> None:
        self._pools = {pool.id: pool for pool in pools if not pool.problem}
        self._card: dict[Device, _CardKey] = {}
        self._devices: dict[_CardKey, list[Device]] = {}
        self._group: dict[_CardKey, Any] = {}
        self._losses: dict[Any, tuple[int, ...]] = {}
        for pool in self._pools.values():
            for _, device in pool.devices():
                sets = tuple(dict.fromkeys(counter[0] for counter, _ in device.counters))
                card = (pool.id, sets or device.name)
                self._card[device] = card
                self._devices.setdefault(card, []).append(device)
                link = link_of(device.facts, LINKS[0])
                if link is not None:
                    self._group[card] = (device.facts.driver, link)

    def ordered(
        self,
        found: Sequence[Candidate],
        count: int,
        usage: Usage,
        first: frozenset[str],
        worth: Worth | None = None,
    ) -> list[Candidate]:
        """The candidates of one pool, the best first.

        count: devices that the request wants of one group. first: names of devices that come before
        all others. worth: of the node, None where nothing is to be expected.
        """
        if len(found) < 2:
            return list(found)
        pool = found[0].pool
        of_pool = usage.get(pool, UNUSED)
        touched = {
            card: self._is_touched(card, of_pool) for card in self._devices if card[0] == pool
        }
        whole: dict[Any, int] = {}
        for card, is_touched in touched.items():
            group = self._group.get(card, card)
            whole[group] = whole.get(group, 0) + (not is_touched)

        losses = worth.losses(found, count, usage) if worth is not None else [0] * len(found)

        def rank(choice: tuple[Candidate, int]) -> tuple[Any, ...]:
            candidate, loss = choice
            device = candidate.device
            card = self._card[device]
            in_group = whole[self._group.get(card, card)]
            return (
                device.name not in first,
                loss,
                not touched[card],
                in_group < count,
                in_group if in_group >= count else -in_group,
                self._loss(device, of_pool),
                _left(candidate, of_pool),
            )

        ranked = sorted(zip(found, losses, strict=True), key=rank)
        return [candidate for candidate, _ in ranked]

    def worth(self, valuation: Valuation) -> Worth:
        """What these devices are worth. Cards of a pool without links count as linked."""
        cards = [
            Card(
                pool,
                tuple(devices),
                tuple((one, self._limit(pool, one)) for one in self._counters((pool, of))),
                self._group.get((pool, of), pool),
            )
            for (pool, of), devices in self._devices.items()
        ]
        counters = {pool.id: pool.counters for pool in self._pools.values() if pool.counters}
        return Worth(cards, counters, valuation)

    def _limit(self, pool: PoolId, counter: Counter) -> int:
        counters = self._pools[pool].counters
        return counters.values[counter] if counters else 0

    def whole_groups(self, usage: Usage) -> set[Any]:
        """Groups, and cards without one, of which nothing is in use."""
        groups: dict[Any, bool] = {}
        for card in self._devices:
            group = self._group.get(card, card)
            is_free = not self._is_touched(card, usage.get(card[0], UNUSED))
            groups[group] = groups.get(group, True) and is_free
        return {group for group, is_free in groups.items() if is_free}

    def _is_touched(self, card: _CardKey, usage: PoolUsage) -> bool:
        """Whether anything of a card is in use."""
        return bool(usage) and any(usage.is_allocated(one.name) for one in self._devices[card])

    def _loss(self, device: Device, usage: PoolUsage) -> tuple[int, ...]:
        """The sizes of what the card can no longer give with this device gone, largest first."""
        card = self._card[device]
        counters = self._pools[card[0]].counters
        if counters is None or not device.counters:
            return ()
        left = usage.slack(counters).left
        mine = tuple(left.get(counter, 0) for counter in self._counters(card))
        key = device, mine
        if key not in self._losses:
            self._losses[key] = self._lost(device, left)
        return self._losses[key]

    def _counters(self, card: _CardKey) -> tuple[Counter, ...]:
        sets = card[1]
        counters = self._pools[card[0]].counters
        values = counters.values if counters else {}
        return tuple(one for one in values if one[0] in sets)

    def _lost(self, device: Device, left: Mapping[Counter, int]) -> tuple[int, ...]:
        taken = dict(device.counters)
        lost = [
            sum(amount for _, amount in other.counters)
            for other in self._devices[self._card[device]]
            if all(left.get(counter, 0) >= amount for counter, amount in other.counters)
            and any(
                left.get(counter, 0) - taken.get(counter, 0) < amount
                for counter, amount in other.counters
            )
        ]
        return tuple(sorted(lost, reverse=True))


def _left(candidate: Candidate, usage: PoolUsage) -> int:
    """What would be left of the first capacity of a device that is shared: little is good."""
    if not candidate.uses:
        return 0
    use = candidate.uses[0]
    return use.limit - use.taken - usage.consumed(candidate.device.name).get(use.name, 0)
