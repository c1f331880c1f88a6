"""Which claims of others would have to go for a gang to fit: as few as can be found.

Of each node on which more members would fit if nothing else were held there, the fewest claims that
have to go for that; then the nodes where that costs least for each member that is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.allocator.gang.changing import without_claims
from dragoon.allocator.gang.model import PlacementSnapshot
from dragoon.allocator.gang.seats import Limits, Load, Seats, added
from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.gang.telling import Standing
from dragoon.allocator.gang.terrain import Bin, Terrain
from dragoon.allocator.model import PoolId
from dragoon.allocator.problem import Attempts
from dragoon.allocator.usage import UNUSED, PoolUsage

_LOOKED_AT: Final = 32
"""Nodes beyond those that are needed whose claims are tried one by one."""
_CLAIMS: Final = 64
"""Claims of a node that are tried one by one."""
_STEPS: Final = 20_000
"""Devices tried on one node."""


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """What a node would give. claims: those that have to go, by `namespace/name`."""

    node: str
    gain: int
    claims: tuple[str, ...]


def claims_to_release(
    snapshot: PlacementSnapshot, shape: Shape, lacking: int, terrain: Terrain, stand: Standing
) -> tuple[str, ...]:
    """Claims that may be enough for that many more blocks; to be tried. Empty if there are none."""
    rough: list[tuple[float, int, str, Bin]] = []
    for one in stand.bins:
        # How many more blocks fit when nobody else holds devices there.
        gain = terrain.alone(one).room(shape, lacking)
        held = _holders(snapshot, one)
        if gain and held:
            rough.append((len(held) / gain, gain, one.node.name, one))
    rough.sort(key=lambda entry: entry[:3])
    offers: list[_Offer] = []
    gained = 0
    looked = 0
    for _, gain, name, one in rough:
        looked += 1 if gained >= lacking else 0
        if looked > _LOOKED_AT:
            break
        offers.append(_Offer(name, gain, _fewest(snapshot, shape, gain, one, terrain)))
        gained += gain
    offers.sort(key=lambda offer: (len(offer.claims) / offer.gain, offer.node))
    chosen: list[str] = []
    for offer in offers:
        if lacking > 0:
            lacking -= offer.gain
            chosen += offer.claims
    return tuple(dict.fromkeys(chosen)) if lacking <= 0 else ()


def _holders(snapshot: PlacementSnapshot, one: Bin) -> dict[str, int]:
    """Claims that hold devices of the node's own pools, and the priority of their pods."""
    found: dict[str, int] = {}
    for pool in snapshot.cluster.by_node.get(one.node.name, ()):
        usage = snapshot.cluster.usage.get(pool, UNUSED)
        for holds in (*usage.exclusive.values(), *usage.shared.values()):
            for hold in holds:
                found[hold.claim] = snapshot.priorities.get(hold.claim, 0)
    return found


def _fewest(
    snapshot: PlacementSnapshot, shape: Shape, gain: int, one: Bin, terrain: Terrain
) -> tuple[str, ...]:
    """The claims that have to go: each is kept that can be kept, those of high priority first."""
    held = _holders(snapshot, one)
    gone = dict.fromkeys(sorted(held, key=lambda claim: (-held[claim], claim)))
    pools = terrain.site_pools(one.node.name)
    own = {pool.id: snapshot.cluster.usage.get(pool.id, UNUSED) for pool in pools}
    wanted = added(one.load, shape.number, gain)
    for claim in list(gone)[:_CLAIMS]:
        fewer = frozenset(gone) - {claim}
        if _fits(without_claims(own, fewer), wanted, one, terrain):
            del gone[claim]
    return tuple(sorted(gone))


def _fits(
    usage: Mapping[PoolId, PoolUsage],
    load: Load,
    one: Bin,
    terrain: Terrain,
) -> bool:
    offers = terrain.offers(one.node.name, one.seats.offers.restrictions)
    seats = Seats(offers, usage, terrain.shapes, Limits(Attempts(_STEPS)))
    return seats.seat(load) is not None
