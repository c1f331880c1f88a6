"""Why a gang does not fit: how many members do, what the next one lacks and where.

Made from a greedy placement of as many members as fit, after the search and apart from it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.allocator.explanation import lines, reason
from dragoon.allocator.findings import Explanation
from dragoon.allocator.funnel import explain
from dragoon.allocator.gang import fit
from dragoon.allocator.gang.attempt import Case, fixed_values
from dragoon.allocator.gang.filling import fill
from dragoon.allocator.gang.model import Missing, NodeFacts, PlacementSnapshot
from dragoon.allocator.gang.narrowing import parts
from dragoon.allocator.gang.realising import picks_of
from dragoon.allocator.gang.seats import with_devices
from dragoon.allocator.gang.shapes import Shape, allocated_selectors
from dragoon.allocator.gang.terrain import Area, Bin, Terrain
from dragoon.allocator.gang.worth import Usage
from dragoon.allocator.model import Claim, Node
from dragoon.allocator.problem import Problem
from dragoon.allocator.usage import UNUSED

_EXPLAINED: Final = 16
"""Kinds of nodes whose devices are looked at one by one."""
_PARTS: Final = 32
"""Parts of the cluster that are compared."""
_EXAMPLE: Final = "; for example "
"""What follows in a reason of the allocator differs from node to node."""


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """As many members as a greedy placement has room for. placed: blocks of each shape."""

    area: Area
    bins: tuple[Bin, ...]
    placed: tuple[int, ...]

    def members(self, shapes: Sequence[Shape]) -> int:
        """How many members that is."""
        return sum(
            len(block.members)
            for shape, count in zip(shapes, self.placed, strict=True)
            for block in shape.blocks[:count]
        )


def standing(snapshot: PlacementSnapshot, case: Case, terrain: Terrain) -> Standing:
    """The part of the cluster in which most members fit, and how many of each shape."""
    needs = [len(shape.blocks) for shape in case.shapes]
    topology = case.ask.topology
    fixed = fixed_values(snapshot, case.fixed, topology)
    found: list[Standing] = []
    for area in parts(terrain, topology.required, needs, fixed).areas[:_PARTS]:
        bins = terrain.bins(area)
        placed: list[int] = []
        for shape in case.shapes:
            wanted = [need * (shape is one) for one, need in zip(case.shapes, needs, strict=True)]
            short = fill(bins, case.shapes, wanted)
            placed.append(needs[shape.number] if short is None else short.fitting)
        found.append(Standing(area, tuple(bins), tuple(placed)))
    nothing = Standing(Area(()), (), (0,) * len(case.shapes))
    return max(found, key=lambda one: one.members(case.shapes), default=nothing)


def missing(
    snapshot: PlacementSnapshot, case: Case, terrain: Terrain, stand: Standing
) -> tuple[tuple[Missing, ...], list[str]]:
    """Of each shape that does not fit what it lacks, and the reasons of the first at length."""
    found: list[Missing] = []
    told: list[str] = []
    for shape, placed in zip(case.shapes, stand.placed, strict=True):
        if placed == len(shape.blocks):
            continue
        what, reasons = _lacking(snapshot, case, terrain, stand, shape)
        rest = [str(one) for block in shape.blocks[placed:] for one in block.members]
        found.append(Missing(tuple(rest), len(shape.blocks), placed, what))
        told = told or reasons
    return tuple(found), told


def _lacking(
    snapshot: PlacementSnapshot, case: Case, terrain: Terrain, stand: Standing, shape: Shape
) -> tuple[str, list[str]]:
    """What the next block of a shape lacks on the nearest node; all reasons with their counts."""
    reasons: Counter[str] = Counter()
    open_to_it = {one.node.name: one for one in stand.bins if one.takes[shape.number]}
    kinds: dict[object, list[Bin]] = {}
    for node in snapshot.nodes:
        one = open_to_it.get(node.name)
        if one is None:
            reasons[_refused(case, shape, node)] += 1
        else:
            kinds.setdefault((one.kind, one.load), []).append(one)
    explained: list[tuple[tuple[int, int, int], str, Explanation]] = []
    by_size = sorted(kinds.values(), key=lambda alike: (-len(alike), alike[0].node.name))
    for position, alike in enumerate(by_size):
        lack = _resources(alike[0], shape)
        if not lack and position >= _EXPLAINED:
            lack = "not worked out"
        if not lack:
            claims = shape.blocks[stand.placed[shape.number]].claims
            explanation = _explained(snapshot, case, terrain, alike[0], claims)
            explained.append((explanation.distance, alike[0].node.name, explanation))
            lack = reason(explanation).partition(_EXAMPLE)[0]
        reasons[lack] += len(alike)
    told = [
        f"{count} {'node' if count == 1 else 'nodes'}: {lack}"
        for lack, count in reasons.most_common()
    ]
    if explained:
        _, name, nearest = min(explained, key=lambda one: one[:2])
        return f"on node {name}: {reason(nearest)}", [*told, *lines(nearest)]
    return "; ".join(told) or "there is no node", told


def _refused(case: Case, shape: Shape, node: NodeFacts) -> str:
    """Why a node is not open to a shape, whatever is in use."""
    if node.name in case.ask.excluded:
        return "left out: a member could not be bound there"
    for member in shape.members:
        text = fit.refusal(member, node)
        if text:
            return text
        if not all(fit.admits(one, node.name, node.labels) for one in allocated_selectors(member)):
            return "a claim of the member has devices of another node"
    return "not in this part of the required topology"


def _resources(one: Bin, shape: Shape) -> str:
    """What of the node itself is too little for one more block."""
    left = dict(one.left)
    left[fit.PODS] -= max(0, shape.pods - 1)
    return fit.shortage(shape.requests, left) if shape.pods else ""


def _explained(
    snapshot: PlacementSnapshot, case: Case, terrain: Terrain, one: Bin, claims: Sequence[Claim]
) -> Explanation:
    """Of the very node: one that stands for it has devices of other names and attributes."""
    pools, cluster = terrain.site_pools(one.node.name), snapshot.cluster
    usage: Usage = {pool.id: cluster.usage.get(pool.id, UNUSED) for pool in pools}
    for count, pick in enumerate(picks_of(terrain, [one])):
        usage = with_devices(usage, case.shapes[pick.shape].claims, pick.solution, count)
    node = Node(one.node.name, one.node.labels)
    return explain(Problem(claims, cluster.classes, pools, usage, node), None)
