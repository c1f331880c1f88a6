"""From loads on nodes that stand for others to each member's node and allocations."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dragoon.allocator.candidates import Candidate
from dragoon.allocator.gang.model import Placement, Slot
from dragoon.allocator.gang.shapes import Block, Shape
from dragoon.allocator.gang.terrain import Bin, Terrain
from dragoon.allocator.model import Claim, Device, DeviceClass, DeviceId, Node, Slice
from dragoon.allocator.pools import Pool
from dragoon.allocator.problem import Chosen, Solution
from dragoon.allocator.result import ShareIds, allocation

_Place = tuple[Pool, Slice, Device]


def pinned(node: str) -> dict[str, Any]:
    """The node selector that admits one node, as kube-scheduler writes it for its devices."""
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [requirement]}]}


def allocations_of(
    claims: Sequence[Claim],
    solution: Solution,
    node: Node,
    classes: Mapping[str, DeviceClass],
    share_ids: ShareIds,
    *,
    shared: frozenset[str] = frozenset(),
) -> dict[str, dict[str, Any]]:
    """The raw allocations by the UID of the claim, pinned to the node.

    shared: claims that keep the node selector of their devices, because pods of other nodes use
    them, too. Raises NodeSelectorError as `allocation` does.
    """
    found: dict[str, dict[str, Any]] = {}
    for claim, chosen in zip(claims, solution, strict=True):
        raw = allocation(claim, chosen, classes, node, share_ids)
        if claim.uid not in shared:
            raw["nodeSelector"] = pinned(node.name)
        found[claim.uid] = raw
    return found


def members_of(
    block: Block, node: str, allocations: Mapping[str, dict[str, Any]]
) -> Iterable[Placement]:
    """The members of a block; each allocation stands with the first that names the claim."""
    left = dict(allocations)
    for member in block.members:
        uids = [str(raw["metadata"].get("uid")) for raw in member.claims]
        yield Placement(member, node, {uid: left.pop(uid) for uid in uids if uid in left})


class Pick(NamedTuple):
    """A block of a shape on a node, and its devices there."""

    shape: int
    bin: Bin
    solution: Solution


def picks_of(terrain: Terrain, bins: Iterable[Bin]) -> list[Pick]:
    """The devices of every block, in the order of cliques and nodes."""
    positions: dict[int, dict[Device, int]] = {}
    found: list[Pick] = []
    for one in sorted(bins, key=lambda one: (str(one.clique), one.node.name)):
        seats = one.seats
        seated = seats.seat(one.load)
        if seated is None:
            raise AssertionError("a bin has only loads that fit")
        if seats.offers.node.name == one.node.name:
            found += (Pick(number, one, solution) for number, solution in seated.picks)
            continue
        if id(seats) not in positions:
            stand_in = enumerate(_places(seats.offers.pools))
            positions[id(seats)] = {device: index for index, (_, _, device) in stand_in}
        places = _places(terrain.site_pools(one.node.name))
        found += (
            Pick(number, one, _moved(solution, positions[id(seats)], places))
            for number, solution in seated.picks
        )
    return found


def placements(
    picks: Sequence[Pick],
    shapes: Sequence[Shape],
    classes: Mapping[str, DeviceClass],
    share_ids: ShareIds,
) -> list[Placement]:
    """The members and what they get.

    Blocks of a shape go to nodes in their order, so that neighbours stay neighbours; a member that
    takes somebody's place gets it first.
    """
    counts = Counter(pick.shape for pick in picks)
    queues = [_Queue(shape.blocks[: counts[shape.number]]) for shape in shapes]
    given: dict[int, Block] = {}
    for position, (number, one, solution) in enumerate(picks):
        block = queues[number].with_slot(one.node.name, _names(solution))
        if block is not None:
            given[position] = block
    found: list[Placement] = []
    for position, (number, one, solution) in enumerate(picks):
        block = given.get(position) or queues[number].next()
        node = Node(one.node.name, one.node.labels)
        own = allocations_of(block.claims, solution, node, classes, share_ids)
        found += members_of(block, node.name, own)
    return found


class _Queue:
    """The blocks of a shape that wait for a node. Mutable."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._plain = deque(one for one in blocks if one.members[0].slot is None)
        self._slotted = [one for one in blocks if one.members[0].slot is not None]

    def with_slot(self, node: str, devices: frozenset[DeviceId]) -> Block | None:
        """Takes the block whose slot is on the node, the one that had these devices first."""
        here = [one for one in self._slotted if node in _nodes_of_slots(one)]
        if not here:
            return None
        found = max(here, key=lambda one: len(devices.intersection(_devices_of_slots(one))))
        self._slotted.remove(found)
        return found

    def next(self) -> Block:
        """Takes the first block; those whose slot is elsewhere come last."""
        return self._plain.popleft() if self._plain else self._slotted.pop(0)


def _slots(block: Block) -> Iterable[Slot]:
    return (one.slot for one in block.members if one.slot is not None)


def _nodes_of_slots(block: Block) -> set[str]:
    return {slot.node for slot in _slots(block)}


def _devices_of_slots(block: Block) -> Iterable[DeviceId]:
    return (device for slot in _slots(block) for device in slot.devices)


def _names(solution: Solution) -> frozenset[DeviceId]:
    return frozenset(one.id for chosen in solution for one in chosen)


def _places(pools: Sequence[Pool]) -> list[_Place]:
    """All devices of usable pools in the order in which nodes that are alike have the same."""
    return [
        (pool, slice_, device)
        for pool in pools
        if not pool.problem
        for slice_, device in pool.devices()
    ]


def _moved(
    solution: Solution, positions: Mapping[Device, int], places: Sequence[_Place]
) -> Solution:
    """The same choice on a node that is alike."""
    return tuple(
        tuple(_moved_one(one, *places[positions[one.candidate.device]]) for one in chosen)
        for chosen in solution
    )


def _moved_one(chosen: Chosen, pool: Pool, slice_: Slice, device: Device) -> Chosen:
    return replace(chosen, candidate=Candidate(pool.id, slice_, device, chosen.candidate.uses))
