"""Placing blocks greedily: first beside the gang's own, then on as few fresh nodes as will do."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from dragoon.allocator.gang.fragments import Value
from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.gang.terrain import Bin


class Short(NamedTuple):
    """The shape for which there is no room. fitting: how many of its blocks fit beside the others.

    sure: it is known that there is no placement.
    """

    shape: int
    fitting: int
    sure: bool


def fill(bins: Sequence[Bin], shapes: Sequence[Shape], needs: Sequence[int]) -> Short | None:
    """Places that many more blocks of each shape greedily; None when all are placed."""
    for shape in shapes:
        left = needs[shape.number]
        left -= _beside(bins, shape, left)
        left -= _anew(bins, shape, left)
        if left:
            return Short(shape.number, needs[shape.number] - left, sure=False)
    return None


def _beside(bins: Sequence[Bin], shape: Shape, left: int) -> int:
    """Places blocks on nodes that have some already, the tightest first; answers how many."""
    used = [(one.room(shape, left), one) for one in bins if one.is_used] if left else []
    placed = 0
    for _, one in sorted(
        (entry for entry in used if entry[0]), key=lambda entry: (entry[0], entry[1].node.name)
    ):
        count = min(left - placed, one.room(shape, left - placed))
        if count:
            one.add(shape, count)
            placed += count
    return placed


class _Tier(NamedTuple):
    """Fresh nodes of one clique that take as many blocks of a shape as each other."""

    room: int
    clique: Any


def _anew(bins: Sequence[Bin], shape: Shape, left: int) -> int:
    """Places blocks on fresh nodes, as few as possible; answers how many."""
    if not left:
        return 0
    tiers = _tiers(bins, shape, left)
    per_clique: Counter[Any] = Counter()
    for tier, alike in tiers.items():
        per_clique[tier.clique] += tier.room * len(alike)
    cliques = {one.clique for one in bins if one.is_used and one.clique is not None}
    costs = _Costs(shape)

    def fit(clique: Any) -> tuple[bool, int]:
        """Of cliques the smallest that has enough comes first."""
        size = per_clique[clique]
        return (size < left, size if size >= left else -size)

    placed = 0
    while placed < left and tiers:
        rest = left - placed
        enough = [tier for tier in tiers if tier.room >= rest]
        if enough:
            # The last node: the one where least is lost, in a clique that is used already.
            found = ((tier, one) for tier in enough for one in tiers[tier])
            _, one = min(
                found,
                key=lambda entry: (
                    entry[0].clique not in cliques,
                    costs.of(entry[1], rest),
                    fit(entry[0].clique),
                    entry[1].node.name,
                ),
            )
            one.add(shape, rest)
            return left
        tier = min(
            tiers,
            key=lambda tier: (
                -tier.room,
                tier.clique not in cliques,
                fit(tier.clique),
                costs.of(tiers[tier][-1], tier.room),
                tiers[tier][-1].node.name,
            ),
        )
        one = tiers[tier].pop()
        if not tiers[tier]:
            del tiers[tier]
        if one.clique is not None:
            cliques.add(one.clique)
        one.add(shape, tier.room)
        placed += tier.room
    return placed


class _Costs:
    """What blocks of a shape cost on fresh nodes. Mutable: nodes that are alike cost the same."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._known: dict[Any, Value] = {}

    def of(self, one: Bin, count: int) -> Value:
        """What that many blocks cost on a node that has room for them."""
        key = id(one.seats), one.load, count, *one.left.values(), *one.beside.values()
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = one.cost(self._shape, count)
        return known


def _tiers(bins: Sequence[Bin], shape: Shape, most: int) -> dict[_Tier, list[Bin]]:
    """Nodes that take the shape and have nothing of the gang yet, by tier, the best last."""
    rooms: dict[Any, int] = {}
    found: dict[_Tier, list[Bin]] = {}
    for one in bins:
        if one.is_used:
            continue
        if one.kind not in rooms:
            rooms[one.kind] = one.room(shape, most)
        room = rooms[one.kind]
        if room:
            found.setdefault(_Tier(room, one.clique), []).append(one)
    costs = _Costs(shape)
    for tier, alike in found.items():
        alike.sort(key=lambda one: (costs.of(one, tier.room), one.node.name), reverse=True)
    return found
