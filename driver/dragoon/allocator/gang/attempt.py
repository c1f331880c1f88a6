"""One attempt to place a gang, without asking why it failed: the planner's and its advice's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.gang import scoring
from dragoon.allocator.gang.filling import Short, fill
from dragoon.allocator.gang.model import (
    GangAsk,
    GangPlan,
    Placement,
    PlacementSnapshot,
    PodAsk,
)
from dragoon.allocator.gang.narrowing import place
from dragoon.allocator.gang.packing import Packed, Wish
from dragoon.allocator.gang.realising import picks_of, placements
from dragoon.allocator.gang.seats import Limits
from dragoon.allocator.gang.settling import settled, with_allocated, with_placements
from dragoon.allocator.gang.shapes import Block, Shape, blocks_of, is_pending, shapes_of
from dragoon.allocator.gang.spreading import placements_of, spread
from dragoon.allocator.gang.terrain import Terrain
from dragoon.allocator.model import DeviceId, Facts, PoolId
from dragoon.allocator.problem import Attempts
from dragoon.allocator.result import ShareIds
from dragoon.api.gang import Level, Topology


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """An ask, sorted. fixed: members that have their place, with all their claims.

    core: those that are placed all or not at all; extra: those that come one by one after them.
    shapes: of the core.
    """

    ask: GangAsk
    fixed: tuple[PodAsk, ...]
    core: tuple[PodAsk, ...]
    extra: tuple[PodAsk, ...]
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """No placement of the core. terrain: what was looked at. steps: devices tried."""

    case: Case
    short: Short
    terrain: Terrain
    steps: int


def sort_out(ask: GangAsk) -> Case:
    """Raises InvalidInputError and UnsupportedError for claims that cannot be planned."""
    fixed = tuple(one for one in ask.members if _has_its_place(one))
    others = [one for one in ask.members if not _has_its_place(one)]
    needed = max(0, ask.minimum - len(fixed))
    most = max(0, ask.maximum - len(fixed)) if ask.maximum else len(others)
    core, extra = tuple(others[:needed]), tuple(others[needed:most])
    blocks_of(extra, ask.tolerations)  # What is wrong with them is said at once.
    shapes = shapes_of(blocks_of(core, ask.tolerations))
    return Case(ask, fixed, core, extra, tuple(shapes))


def attempt(
    snapshot: PlacementSnapshot, case: Case, steps: int, share_ids: ShareIds
) -> GangPlan | Failed:
    """Places the gang; the plan is not verified yet."""
    limits = Limits(Attempts(steps))
    found = _place_core(snapshot, case, limits, share_ids)
    if isinstance(found, Failed):
        return found
    more = _place_extra(snapshot, case, found, limits, share_ids) if case.extra else []
    everyone = [*found.placements, *more]
    placed = {one.pod.uid for one in everyone}
    results = (
        PoolId(result["driver"], result["pool"])
        for one in everyone
        for raw in one.allocations.values()
        for result in raw["devices"]["results"]
    )
    return replace(
        found,
        placements=tuple(everyone),
        pools=tuple(sorted(set(results))),
        optimistic=tuple(dict.fromkeys(rule for one in everyone for rule in one.pod.unmodelled)),
        left_out=tuple(
            one.uid for one in case.ask.members if one.uid not in placed and not _has_its_place(one)
        ),
        steps=steps - limits.attempts.left,
    )


def _place_core(
    snapshot: PlacementSnapshot, case: Case, limits: Limits, share_ids: ShareIds
) -> GangPlan | Failed:
    steps = limits.attempts.left
    topology = case.ask.topology
    fixed = fixed_values(snapshot, case.fixed, topology)
    terrain = Terrain(snapshot, case.ask, case.shapes, limits)
    if terrain.has_floating:
        blocks = blocks_of(case.core, case.ask.tolerations, apart=True)
        case = replace(case, shapes=tuple(shapes_of(blocks)))
        terrain = Terrain(snapshot, case.ask, case.shapes, limits)
        spots = spread(terrain, blocks, snapshot.cluster, topology, fixed)
        if isinstance(spots, Short):
            return Failed(case, spots, terrain, steps - limits.attempts.left)
        picks = [spot.pick for spot in spots]
        given = placements_of(spots, terrain.shapes, snapshot.cluster.classes, share_ids)
    else:
        needs = [len(shape.blocks) for shape in case.shapes]
        found = place(terrain, topology, needs, fixed, _wishes(case.shapes))
        if isinstance(found, Short):
            return Failed(case, found, terrain, steps - limits.attempts.left)
        picks = picks_of(terrain, found.used)
        given = placements(picks, case.shapes, snapshot.cluster.classes, share_ids)
    return GangPlan(
        placements=tuple(given),
        pools=(),
        optimistic=(),
        score=scoring.score(picks, topology),
        domain=tuple(
            str(value) for level in topology.required for value in scoring.values(picks, level)
        ),
    )


def _place_extra(
    snapshot: PlacementSnapshot, case: Case, core: GangPlan, limits: Limits, share_ids: ShareIds
) -> list[Placement]:
    """Places members beyond the core one by one, in a copy of the snapshot that has the core."""
    after = with_placements(snapshot, core.placements)
    given = {uid: raw for one in core.placements for uid, raw in one.allocations.items()}
    fixed = (*case.fixed, *settled(core.placements).values())
    extra = [with_allocated(pod, given) for pod in case.extra]
    ask = replace(case.ask, members=(*fixed, *extra))
    blocks = blocks_of(extra, ask.tolerations)
    shapes = shapes_of(blocks)
    terrain = Terrain(after, ask, shapes, limits)
    topology = Topology(required=case.ask.topology.required)
    if terrain.has_floating:
        return _one_by_one(snapshot, case, core, limits, share_ids)
    none = [0] * len(shapes)
    found = place(terrain, topology, none, fixed_values(after, fixed, topology), ())
    if isinstance(found, Short):
        return []
    _fill_in_order(found, shapes, blocks)
    new = placements(picks_of(terrain, found.used), shapes, after.cluster.classes, share_ids)
    original = {pod.uid: pod for pod in case.extra}
    return [replace(one, pod=original[one.pod.uid]) for one in new]


def _one_by_one(
    snapshot: PlacementSnapshot, case: Case, core: GangPlan, limits: Limits, share_ids: ShareIds
) -> list[Placement]:
    """The same where nodes do not stand for each other: a core of one after the other."""
    placed = list(core.placements)
    for pod in case.extra:
        after = with_placements(snapshot, placed)
        given = {uid: raw for one in placed for uid, raw in one.allocations.items()}
        alone = (with_allocated(pod, given),)
        blocks = blocks_of(alone, case.ask.tolerations)
        next_case = replace(
            case,
            fixed=(*case.fixed, *settled(placed).values()),
            core=alone,
            extra=(),
            shapes=tuple(shapes_of(blocks)),
        )
        found = _place_core(after, next_case, limits, share_ids)
        if isinstance(found, GangPlan):
            placed += (replace(one, pod=pod) for one in found.placements)
    return placed[len(core.placements) :]


def _fill_in_order(packed: Packed, shapes: Sequence[Shape], blocks: Sequence[Block]) -> None:
    """One block after the other; where one does not fit, those like it do not either."""
    shape_of = {id(block): shape for shape in shapes for block in shape.blocks}
    full: set[int] = set()
    for number, run in groupby(blocks, key=lambda block: shape_of[id(block)].number):
        count = len(list(run))
        if number not in full:
            needs = [count * (one.number == number) for one in shapes]
            if fill(packed.bins, shapes, needs) is not None:
                full.add(number)


def _has_its_place(pod: PodAsk) -> bool:
    return bool(pod.node) and not any(map(is_pending, pod.claims))


def _wishes(shapes: Sequence[Shape]) -> list[Wish]:
    """The nodes of those whose place members take."""
    return [
        Wish(shape.number, slot.node)
        for shape in shapes
        for block in shape.blocks
        if (slot := block.members[0].slot) is not None
    ]


def fixed_values(
    snapshot: PlacementSnapshot, pods: Sequence[PodAsk], topology: Topology
) -> dict[Level, frozenset[Any]]:
    """The values of all levels that members have which have their place."""
    return {
        level: frozenset(_values_of(snapshot, pods, level))
        for level in (*topology.required, *topology.preferred)
    }


def _values_of(snapshot: PlacementSnapshot, fixed: Sequence[PodAsk], level: Level) -> set[Any]:
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
