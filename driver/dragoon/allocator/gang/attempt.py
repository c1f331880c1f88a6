"""One attempt to place a gang, without asking why it failed: the planner's and its advice's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.gang import scoring
from dragoon.allocator.gang.model import GangAsk, GangPlan, PlacementSnapshot, PodAsk
from dragoon.allocator.gang.narrowing import place
from dragoon.allocator.gang.packing import Packed, Short, Wish, fill
from dragoon.allocator.gang.realising import picks_of, placements
from dragoon.allocator.gang.seats import Limits
from dragoon.allocator.gang.shapes import Block, Shape, blocks_of, is_pending, shapes_of
from dragoon.allocator.gang.terrain import Terrain
from dragoon.allocator.model import DeviceId, Facts, PoolId
from dragoon.allocator.result import ShareIds
from dragoon.allocator.search import Attempts
from dragoon.api.gang import Level


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """An ask, sorted: the members that have their place, and shapes of the others.

    needs: of each shape, how many blocks are placed all or not at all; the rest one by one.
    """

    ask: GangAsk
    fixed: tuple[PodAsk, ...]
    shapes: tuple[Shape, ...]
    needs: tuple[int, ...]

    @property
    def wanted(self) -> int:
        """Members that are placed all or not at all, without those that have their place."""
        return sum(
            len(block.members)
            for shape, need in zip(self.shapes, self.needs, strict=True)
            for block in shape.blocks[:need]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """No placement. terrain: what was looked at. steps: devices tried."""

    short: Short
    terrain: Terrain
    steps: int


def sort_out(ask: GangAsk) -> Case:
    """Raises InvalidInputError and UnsupportedError for claims that cannot be planned."""
    fixed = tuple(one for one in ask.members if one.node and not _has_pending(one))
    others = [one for one in ask.members if not (one.node and not _has_pending(one))]
    core = {one.uid for one in others[: max(0, ask.minimum - len(fixed))]}
    blocks = blocks_of(others, ask.tolerations)
    # A block with a member of the core is core as a whole; sorting keeps the order otherwise.
    blocks.sort(key=lambda block: not _is_core(block, core))
    shapes = tuple(shapes_of(blocks))
    needs = tuple(sum(_is_core(block, core) for block in shape.blocks) for shape in shapes)
    return Case(ask, fixed, shapes, needs)


def attempt(
    snapshot: PlacementSnapshot, case: Case, steps: int, share_ids: ShareIds
) -> GangPlan | Failed:
    """Places the gang, not verified yet."""
    limits = Limits(Attempts(steps))
    terrain = Terrain(snapshot, case.ask, case.shapes, limits)
    topology = case.ask.topology
    fixed = {
        level: frozenset(_fixed_values(snapshot, case.fixed, level))
        for level in (*topology.required, *topology.preferred)
    }
    found = place(terrain, topology, case.needs, fixed, _wishes(case.shapes))
    if isinstance(found, Short):
        return Failed(found, terrain, steps - limits.attempts.left)
    placed = _more(found, case)
    picks = picks_of(terrain, found.used)
    given = placements(picks, case.shapes, snapshot.cluster.classes, share_ids)
    results = (
        PoolId(result["driver"], result["pool"])
        for one in given
        for raw in one.allocations.values()
        for result in raw["devices"]["results"]
    )
    return GangPlan(
        placements=tuple(given),
        pools=tuple(sorted(set(results))),
        optimistic=tuple(dict.fromkeys(rule for one in given for rule in one.pod.unmodelled)),
        score=scoring.score(picks, topology),
        left_out=tuple(
            member.uid
            for shape, count in zip(case.shapes, placed, strict=True)
            for block in shape.blocks[count:]
            for member in block.members
        ),
        domain=tuple(
            str(value) for level in topology.required for value in scoring.values(picks, level)
        ),
        steps=steps - limits.attempts.left,
    )


def _has_pending(pod: PodAsk) -> bool:
    return any(map(is_pending, pod.claims))


def _is_core(block: Block, core: set[str]) -> bool:
    return any(one.uid in core for one in block.members)


def _more(packed: Packed, case: Case) -> list[int]:
    """Places blocks beyond the core in their order; answers how many of each shape are placed."""
    placed = list(case.needs)
    order = {one.uid: position for position, one in enumerate(case.ask.members)}
    extra = [
        (order[block.members[0].uid], shape, block)
        for shape in case.shapes
        for block in shape.blocks[case.needs[shape.number] :]
    ]
    left = case.ask.maximum - len(case.fixed) - case.wanted if case.ask.maximum else len(order)
    full: set[int] = set()
    for _, shape, block in sorted(extra, key=lambda one: one[0]):
        if shape.number in full or len(block.members) > left:
            full.add(shape.number)
            continue
        needs = [int(one.number == shape.number) for one in case.shapes]
        if fill(packed.bins, case.shapes, needs) is None:
            placed[shape.number] += 1
            left -= len(block.members)
        else:
            full.add(shape.number)
    return placed


def _wishes(shapes: Sequence[Shape]) -> list[Wish]:
    """The nodes of those whose place members take."""
    return [
        Wish(shape.number, slot.node)
        for shape in shapes
        for block in shape.blocks
        if (slot := block.members[0].slot) is not None
    ]


def _fixed_values(snapshot: PlacementSnapshot, fixed: Sequence[PodAsk], level: Level) -> set[Any]:
    """The values of a level that members have which have their place."""
    if level.node_label:
        labels = {one.name: one.labels for one in snapshot.nodes}
        found = {labels.get(pod.node, {}).get(level.node_label) for pod in fixed}
        return found - {None}
    facts = (_facts(snapshot, device) for pod in fixed for device in devices_of(pod))
    values = (attribute_of(one, level.attribute) for one in facts if one is not None)
    return {value[1] for value in values if value and value[0]}


def _facts(snapshot: PlacementSnapshot, id_: DeviceId) -> Facts | None:
    pool = snapshot.cluster.pools.get(PoolId(id_.driver, id_.pool))
    devices = (one for slice_ in (pool.slices if pool else ()) for one in slice_.devices)
    return next((one.facts for one in devices if one.name == id_.device), None)


def devices_of(pod: PodAsk) -> list[DeviceId]:
    """The devices of the claims of a pod that are allocated."""
    allocations: list[Mapping[str, Any]] = [
        (claim.get("status") or {}).get("allocation") or {} for claim in pod.claims
    ]
    return [
        DeviceId(result["driver"], result["pool"], result["device"])
        for allocation in allocations
        for result in (allocation.get("devices") or {}).get("results") or ()
    ]
