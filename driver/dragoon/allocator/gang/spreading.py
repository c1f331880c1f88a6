"""Gangs that could have devices of several nodes: one block after the other, with backtracking.

What one node takes of such a pool the others lack, so nodes do not stand for each other, and
members that share a claim may be on different nodes. On each node only the best devices are tried,
so a failure proves nothing unless a block fits nowhere even alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.allocator.gang import fit
from dragoon.allocator.gang.bounds import is_too_much
from dragoon.allocator.gang.filling import Short
from dragoon.allocator.gang.model import Placement
from dragoon.allocator.gang.narrowing import parts
from dragoon.allocator.gang.realising import Pick, allocations_of, members_of
from dragoon.allocator.gang.seats import Seats, with_devices
from dragoon.allocator.gang.shapes import Block, Shape, is_pending, uid_of
from dragoon.allocator.gang.terrain import Area, Bin, Terrain
from dragoon.allocator.gang.worth import Usage
from dragoon.allocator.model import Device, DeviceClass, Node, Raw, Request
from dragoon.allocator.nodes import NodeSelectorError
from dragoon.allocator.problem import SearchStoppedError, Solution
from dragoon.allocator.result import ShareIds, allocation
from dragoon.allocator.snapshot import Snapshot
from dragoon.api.gang import Level, Topology

_DEPTH: Final = 400
"""Blocks that are placed one within the other: Python's stack bounds it."""


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """A block where it was placed."""

    block: Block
    pick: Pick


@dataclass(slots=True, eq=False)
class _State:
    """What is placed so far. Mutable. selectors: of allocated claims that others may share."""

    usage: Usage
    spots: list[Spot] = field(default_factory=list)
    selectors: dict[str, Raw | None] = field(default_factory=dict)


def spread(
    terrain: Terrain,
    blocks: Sequence[Block],
    cluster: Snapshot,
    topology: Topology,
    fixed: Mapping[Level, frozenset[Any]],
) -> list[Spot] | Short:
    """Places all blocks of the terrain's shapes.

    blocks: the same in the order of their members. Those that share claims come first, in order: a
    claim is planned with the first that names it. Then those that want most devices.
    """
    if len(blocks) > _DEPTH:
        return Short(0, 0, sure=False)
    in_order = _in_order(terrain.shapes, blocks)
    needs = [len(shape.blocks) for shape in terrain.shapes]
    tried = parts(terrain, topology.required, needs, fixed)
    sure = tried.complete
    for part in tried.areas:
        liked = terrain.groups(part, topology.preferred[0]) if topology.preferred else {}
        for area in (*liked.values(), part):
            run = _Run(terrain, area, in_order, cluster.classes, _State(cluster.usage))
            try:
                if run.place(0):
                    return run.state.spots
            except SearchStoppedError:
                return Short(0, 0, sure=False)
        sure = sure and run.is_impossible()
    return Short(0, 0, sure=sure)


class _Run:
    """One attempt in one area."""

    def __init__(
        self,
        terrain: Terrain,
        area: Area,
        blocks: Sequence[tuple[Shape, Block]],
        classes: Mapping[str, DeviceClass],
        state: _State,
    ) -> None:
        self._terrain = terrain
        self._bins = terrain.bins(area)
        self._blocks = blocks
        self._classes = classes
        self.state = state

    def place(self, index: int) -> bool:
        """Places this block and all after it."""
        if index == len(self._blocks):
            return True
        shape, block = self._blocks[index]
        used = {spot.pick.bin.node.name for spot in self.state.spots}
        for one in sorted(self._bins, key=lambda one: one.node.name not in used):
            self._terrain.limits.attempts.count()
            solution = self._solution(shape, block, one)
            if solution is None:
                continue
            before = self.state.usage, dict(self.state.selectors)
            if not self._take(shape, block, one, solution):
                continue
            if self.place(index + 1):
                return True
            self.state.spots.pop()
            one.add(shape, -1)
            self.state.usage, self.state.selectors = before
        return False

    def is_impossible(self) -> bool:
        """Whether it is certain that there is no placement: by sums, or one block fits nowhere."""
        counts = Counter(shape.number for shape, _ in self._blocks)
        shapes = {shape.number: shape for shape, _ in self._blocks}
        if is_too_much(self._free, [(shapes[one], count) for one, count in counts.items()]):
            return True
        limits = self._terrain.limits
        before, limits.unsure = limits.unsure, False
        alone = any(
            not any(self._solution(shape, block, one) is not None for one in self._bins)
            for shape, block in self._blocks
        )
        certain, limits.unsure = alone and not limits.unsure, before
        return certain

    def _free(self, request: Request) -> frozenset[Device] | None:
        """The devices of all nodes that a request could have."""
        found: set[Device] = set()
        for one in self._bins:
            its = one.seats.free(request)
            if its is None:
                return None
            found |= its
        return frozenset(found)

    def _solution(self, shape: Shape, block: Block, one: Bin) -> Solution | None:
        """Devices for the block beside what is placed already."""
        if not one.takes[shape.number]:
            return None
        if shape.pods and fit.shortage(shape.requests, one.left):
            return None
        for uid in (uid_of(raw) for member in block.members for raw in member.claims):
            selector = self.state.selectors.get(uid)
            if selector and not fit.admits(selector, one.node.name, one.node.labels):
                return None
        seats = Seats(
            self._terrain.offers(one.node.name, one.seats.offers.restrictions),
            self.state.usage,
            self._terrain.shapes,
            self._terrain.limits,
        )
        seated = seats.seat(((shape.number, 1),))
        return None if seated is None else seated.picks[0][1]

    def _take(self, shape: Shape, block: Block, one: Bin, solution: Solution) -> bool:
        selectors: dict[str, Raw | None] = {}
        for claim, chosen in zip(block.claims, solution, strict=True):
            try:
                raw = allocation(claim, chosen, self._classes, one.seats.offers.node, str)
            except NodeSelectorError:
                return False
            selectors[claim.uid] = raw.get("nodeSelector")
        self.state.selectors |= selectors
        position = len(self.state.spots)
        self.state.usage = with_devices(self.state.usage, block.claims, solution, position)
        self.state.spots.append(Spot(block, Pick(shape.number, one, solution)))
        one.add(shape, 1)
        return True


def placements_of(
    spots: Sequence[Spot],
    shapes: Iterable[Shape],
    classes: Mapping[str, DeviceClass],
    share_ids: ShareIds,
) -> list[Placement]:
    """The members and what they get."""
    shared = _shared(shapes)
    found: list[Placement] = []
    for spot in spots:
        facts = spot.pick.bin.node
        node = Node(facts.name, facts.labels)
        solution = spot.pick.solution
        own = allocations_of(spot.block.claims, solution, node, classes, share_ids, shared=shared)
        found += members_of(spot.block, node.name, own)
    return found


def _in_order(shapes: Sequence[Shape], blocks: Sequence[Block]) -> list[tuple[Shape, Block]]:
    shape_of = {id(block): shape for shape in shapes for block in shape.blocks}
    shared = _shared(shapes)
    sharing = [
        block
        for block in blocks
        if any(uid_of(raw) in shared for one in block.members for raw in one.claims)
    ]
    known = set(map(id, sharing))
    rest = [block for shape in shapes for block in shape.blocks if id(block) not in known]
    return [(shape_of[id(block)], block) for block in (*sharing, *rest)]


def _shared(shapes: Iterable[Shape]) -> frozenset[str]:
    """Claims that members of several blocks use: they keep the node selector of their devices."""
    users = Counter(
        uid
        for shape in shapes
        for block in shape.blocks
        for uid in {uid_of(raw) for one in block.members for raw in one.claims if is_pending(raw)}
    )
    return frozenset(uid for uid, count in users.items() if count > 1)
