"""Topology: in which part of the cluster a gang is placed.

Required levels: every value of each is tried, the smallest part that is large enough first.
Preferred levels: one value if that can be, else as few as can be found, else any. Fabric cliques
are preferred by themselves, but never for more nodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoon.allocator.gang.filling import Short
from dragoon.allocator.gang.offers import Restriction
from dragoon.allocator.gang.packing import Packed, Wish, pack
from dragoon.allocator.gang.terrain import Area, Bin, Terrain
from dragoon.api.gang import Level, Topology

_COMPARED: Final = 8
"""Parts in which the gang fits that are compared before the best is taken."""
_UNIONS: Final = 16
"""Numbers of values of a preferred level that are tried."""

Found = Packed | Short


class Parts(NamedTuple):
    """Parts of the cluster. complete: none of them was left out, whatever preferences leave out."""

    areas: list[Area]
    complete: bool


def place(
    terrain: Terrain,
    topology: Topology,
    needs: Sequence[int],
    fixed: Mapping[Level, frozenset[Any]],
    wishes: Sequence[Wish],
) -> Found:
    """Places blocks of the shapes of a terrain. needs: how many of each.

    fixed: the values of levels that members which are placed already have.
    """
    if not terrain.shapes:
        return Packed(())
    narrowing = _Narrowing(terrain, needs, fixed, wishes)
    fitting: list[Packed] = []
    best: Short | None = None
    tried = parts(terrain, topology.required, needs, fixed)
    for area in tried.areas:
        found = narrowing.preferred(area, topology.preferred)
        if isinstance(found, Packed):
            fitting.append(found)
            if len(fitting) == _COMPARED:
                break
        elif best is None:
            best = found
        else:
            better = max(best, found, key=lambda one: (one.shape, one.fitting))
            best = better._replace(sure=best.sure and found.sure)
    if fitting:
        return min(fitting, key=lambda one: len(one.used))
    best = best or Short(0, 0, sure=True)
    return best._replace(sure=best.sure and tried.complete)


def parts(
    terrain: Terrain,
    required: Sequence[Level],
    needs: Sequence[int],
    fixed: Mapping[Level, frozenset[Any]],
) -> Parts:
    """The parts of the cluster in which each required level has one value, as they are tried."""
    areas = [terrain.all]
    for level in required:
        allowed = fixed.get(level)
        areas = [
            group
            for area in areas
            for value, group in terrain.groups(area, level).items()
            if not allowed or allowed == {value}
        ]
    in_order = [area for _, area in _smallest_first(terrain, dict(enumerate(areas)), needs)]
    return Parts(in_order, complete=not terrain.is_cut)


def _smallest_first(
    terrain: Terrain, groups: Mapping[Any, Area], needs: Sequence[int]
) -> list[tuple[Any, Area]]:
    """The smallest group that takes all of the gang first; then the others, largest first."""
    if len(groups) < 2:
        return list(groups.items())
    sizes = _sizes(terrain, groups, needs)
    need = needs[0]
    return sorted(
        groups.items(),
        key=lambda one: (sizes[one[0]] < need, abs(sizes[one[0]] - need), str(one[0])),
    )


def _sizes(terrain: Terrain, groups: Mapping[Any, Area], needs: Sequence[int]) -> dict[Any, int]:
    """How many blocks of the shape that is hardest to place each group takes."""
    shape, need = terrain.shapes[0], max(1, needs[0])
    return {
        value: sum(one.room(shape, need) for one in terrain.bins(area))
        for value, area in groups.items()
    }


class _Narrowing:
    """Preferences within one part."""

    def __init__(
        self,
        terrain: Terrain,
        needs: Sequence[int],
        fixed: Mapping[Level, frozenset[Any]],
        wishes: Sequence[Wish],
    ) -> None:
        self._terrain = terrain
        self._needs = needs
        self._fixed = fixed
        self._wishes = wishes

    def preferred(self, area: Area, levels: Sequence[Level]) -> Found:
        """As few values of the first level as can be found, then of the others."""
        if not levels:
            return self._by_cliques(area)
        groups = self._terrain.groups(area, levels[0])
        liked = self._fixed.get(levels[0], frozenset())
        order = sorted(
            _smallest_first(self._terrain, groups, self._needs), key=lambda one: one[0] not in liked
        )
        for _, group in order:
            found = self.preferred(group, levels[1:])
            if isinstance(found, Packed):
                return found
        plain = self.preferred(area, levels[1:])
        if isinstance(plain, Short) or len(groups) < 3:
            return plain
        spread = len({value for one in plain.used for value in self._values(one, levels[0])})
        for union in self._unions(area, levels[0], groups, min(spread, _UNIONS)):
            found = self.preferred(union, levels[1:])
            if isinstance(found, Packed):
                return found
        return plain

    def _by_cliques(self, area: Area) -> Found:
        """In one fabric clique, or in few, where that needs no more nodes."""
        plain = self._packed(area)
        if isinstance(plain, Short) or len({one.clique for one in plain.used}) < 2:
            return plain
        nodes = len(plain.used)
        cliques: dict[Any, list[Bin]] = {}
        for one in self._terrain.bins(area):
            cliques.setdefault(one.clique, []).append(one)
        groups = {
            value: Area(tuple(one.node for one in bins), area.restrictions)
            for value, bins in cliques.items()
            if value is not None
        }
        for _, group in _smallest_first(self._terrain, groups, self._needs):
            found = self._packed(group)
            if isinstance(found, Packed) and len(found.used) <= nodes:
                return found
        return plain

    def _packed(self, area: Area) -> Found:
        terrain = self._terrain
        return pack(
            lambda: terrain.bins(area), terrain.shapes, self._needs, terrain.limits, self._wishes
        )

    def _unions(
        self, area: Area, level: Level, groups: Mapping[Any, Area], before: int
    ) -> Iterator[Area]:
        """The two largest groups together, then the three largest, up to fewer than before."""
        sizes = _sizes(self._terrain, groups, self._needs)
        largest = sorted(groups, key=lambda value: (-sizes[value], str(value)))
        for count in range(2, before):
            values = largest[:count]
            names = {node.name for value in values for node in groups[value].nodes}
            nodes = tuple(node for node in area.nodes if node.name in names)
            if level.attribute:
                only = Restriction(level.attribute, frozenset(values))
                yield Area(nodes, (*area.restrictions, only))
            else:
                yield Area(nodes, area.restrictions)

    def _values(self, one: Bin, level: Level) -> frozenset[Any]:
        if level.node_label:
            return frozenset((one.node.labels.get(level.node_label),))
        return self._terrain.values(one.node, level.attribute)
