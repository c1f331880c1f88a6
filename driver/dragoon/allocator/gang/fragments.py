"""How much of a node is lost to the pods that are to be expected: what the planner keeps small.

A card's free part is lost to a typical pod that cannot use it: the part is too small, is in the
wrong place, too few cards are free beside it, or the node has too little cpu left. The loss of a
node is the sum over the typical pods, each by its weight (the measure of FGD, USENIX ATC '23). It
goes beyond it in two points: of a free part only whole pods count, and of pods only as many as what
is left of cpu and memory feeds. Plain arithmetic on small records: it knows no devices or claims.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

CARD: Final = 1000
"""A whole card; all parts of cards are in thousandths of one."""
_COMPANY: Final = 2
"""How many times the pods that cpu and memory feed count: others that come will want less of them.

Measured with `hack/bench packing`: 2 and 3 give the same, 1 and 4 are worse."""
_PLENTY: Final = 2**62
"""Of a resource of which the node does not say what it has."""
_REMEMBERED: Final = 200_000
"""Sets of cards that are remembered."""


class Typical(NamedTuple):
    """A pod that is to be expected. weight: how often. devices: how many it wants, linked ones.

    amounts: what it takes of its node, by resource; nothing of a resource is left out.
    """

    weight: int
    devices: int
    amounts: tuple[tuple[str, int], ...] = ()


class Give(NamedTuple):
    """What a card could give pods of one kind: devices, and how much of the card they all are."""

    devices: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class CardState:
    """A card as it is used now. Made once per state: it is compared by identity.

    free: the part that is in no use. gives: by the number of the typical pod. group: cards with
    equal groups are linked.
    """

    free: int
    gives: tuple[Give, ...]
    group: Hashable = None


class _Holds(NamedTuple):
    """How many pods of a kind some cards hold together, and how much of the cards they take."""

    pods: int
    size: int


class Value(NamedTuple):
    """What is lost of a node, and what is free on it; less of both is better, the first counts."""

    loss: int
    free: int


NOTHING: Final = Value(0, 0)
"""Of a node that is not measured."""


class _Cards(NamedTuple):
    """A set of cards. loss: with plenty of cpu and memory. fed: pods that need some to count.

    fed: weight, pods, their size, and what one takes of its node.
    """

    free: int
    loss: int
    fed: tuple[tuple[int, int, int, tuple[tuple[str, int], ...]], ...]


class Yardstick:
    """Measures nodes by the same typical pods. Mutable: it remembers sets of cards."""

    def __init__(self, typical: Sequence[Typical]) -> None:
        self.typical = tuple(typical)
        self._known: dict[tuple[CardState, ...], _Cards] = {}

    def value(self, cards: tuple[CardState, ...], left: Mapping[str, int] | None = None) -> Value:
        """The value of a node with these cards. left: of its resources, None for plenty."""
        known = self._known.get(cards)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[cards] = self._measured(cards)
        if left is None:
            return Value(known.loss, known.free)
        loss = known.loss
        for weight, pods, size, amounts in known.fed:
            fed = pods
            for resource, amount in amounts:
                enough = _COMPANY * (left.get(resource, _PLENTY) // amount)
                if enough < fed:
                    fed = max(0, enough)
            if fed < pods:
                loss += weight * (size - size * fed // pods)
        return Value(loss, known.free)

    def _measured(self, cards: Sequence[CardState]) -> _Cards:
        free = sum(one.free for one in cards)
        loss = 0
        fed: list[tuple[int, int, int, tuple[tuple[str, int], ...]]] = []
        for number, kind in enumerate(self.typical):
            held = _holds([(one.group, one.gives[number]) for one in cards], kind.devices)
            loss += kind.weight * (free - held.size)
            if held.pods and kind.amounts:
                fed.append((kind.weight, held.pods, held.size, kind.amounts))
        return _Cards(free, loss, tuple(fed))


def _holds(gives: Sequence[tuple[Hashable, Give]], count: int) -> _Holds:
    """Pods of that many devices each; the devices of one pod are of one group."""
    if count == 1:
        return _Holds(sum(one.devices for _, one in gives), sum(one.size for _, one in gives))
    groups: dict[Hashable, tuple[int, int]] = {}
    for group, one in gives:
        devices, size = groups.get(group, (0, 0))
        groups[group] = devices + one.devices, size + one.size
    pods = size = 0
    for devices, together in groups.values():
        if devices >= count:
            pods += devices // count
            size += together * (devices // count * count) // devices
    return _Holds(pods, size)
