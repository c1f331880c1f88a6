"""What concerns a gang that waits: where its members could be, and whose devices they could have.

However full nodes and pools are: what changes elsewhere makes no difference to it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dragoon.allocator.candidates import Query, candidates, query_of
from dragoon.allocator.gang import fit
from dragoon.allocator.gang.attempt import sort_out
from dragoon.allocator.gang.model import GangAsk, NodeFacts, PlacementSnapshot
from dragoon.allocator.gang.offers import requests_of
from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.model import Node, PoolId
from dragoon.allocator.pools import Pool
from dragoon.errors import DragoonError


@dataclass(frozen=True, slots=True)
class Concern:
    """nodes: that take a member, and have devices for it. pools: that have such devices."""

    nodes: frozenset[str]
    pools: frozenset[PoolId]


def concern(snapshot: PlacementSnapshot, ask: GangAsk) -> Concern | None:
    """What concerns the gang. None where that cannot be said: then everything does."""
    try:
        shapes = sort_out(ask).shapes
        wanted = [(shape, _queries(snapshot, shape)) for shape in shapes]
        nodes: set[str] = set()
        pools: set[PoolId] = set()
        for node in snapshot.nodes:
            open_to = [query for shape, query in wanted if _admits(shape, node)]
            if open_to:
                found = set(_offering(snapshot, node, open_to))
                pools |= found
                if found or not all(open_to):
                    nodes.add(node.name)
    except DragoonError:
        return None
    return Concern(frozenset(nodes), frozenset(pools))


def _queries(snapshot: PlacementSnapshot, shape: Shape) -> tuple[Query, ...]:
    classes = snapshot.cluster.classes
    requests = requests_of(claim for block in shape.blocks[:1] for claim in block.claims)
    return tuple(
        query_of(one, classes[one.class_name].selectors)
        for one in requests
        if one.class_name in classes
    )


def _admits(shape: Shape, node: NodeFacts) -> bool:
    return not any(fit.refusal(member, node) for member in shape.members)


def _offering(
    snapshot: PlacementSnapshot, node: NodeFacts, wanted: Iterable[tuple[Query, ...]]
) -> Iterator[PoolId]:
    """The pools of a node with a device that one of these asks for."""
    for pool in snapshot.cluster.site(Node(node.name, node.labels)).pools:
        if any(_offers(pool, query) for queries in wanted for query in queries):
            yield pool.id


def _offers(pool: Pool, query: Query) -> bool:
    # A pool that is being updated has nothing now and may have anything then.
    return bool(pool.problem) or bool(candidates(pool, query))
