"""What has become free, and whether that matters to a gang that waits. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dragoon.allocator.gang.concern import Concern
from dragoon.allocator.gang.model import NodeFacts
from dragoon.allocator.model import PoolId
from dragoon.gang.protocol.model import RuleFacts
from dragoon.gang.records import Raw


@dataclass(frozen=True, slots=True)
class Freed:
    """nodes: on which pods made room. pools: in which devices were let go.

    fleet: what there is has changed (nodes, slices, classes, rules), which may matter to anybody.
    """

    nodes: frozenset[str] = frozenset()
    pools: frozenset[PoolId] = frozenset()
    fleet: bool = False

    def matters(self, concern: Concern | None, *, never: bool) -> bool:
        """Whether a gang has to be planned again.

        concern: None where it is not known. never: not even an empty cluster had room for it.
        """
        if self.fleet or concern is None:
            return True
        here = not (self.nodes.isdisjoint(concern.nodes) and self.pools.isdisjoint(concern.pools))
        return here and not never


FLEET: Final = Freed(fleet=True)


def by_node(name: str) -> Freed:
    """A pod has left a node."""
    return Freed(nodes=frozenset((name,)))


def by_claim(allocation: Raw) -> Freed:
    """A claim has let go of what a raw status.allocation gave it."""
    results = (allocation.get("devices") or {}).get("results") or ()
    return by_pools(PoolId(one["driver"], one["pool"]) for one in results)


def by_rules(rules: Iterable[RuleFacts | None]) -> Freed:
    """Rules have come or gone. None: one that is not ours, and may be about any device."""
    found = list(rules)
    ours = [PoolId(one.driver, one.pool) for one in found if one is not None]
    return by_pools(ours) if len(ours) == len(found) else FLEET


def by_pools(pools: Iterable[PoolId]) -> Freed:
    """Something in these pools is not promised any more."""
    return Freed(pools=frozenset(pools))


def differs(one: NodeFacts, other: NodeFacts) -> bool:
    """Whether what planners look at has changed; heartbeats change nothing of it."""
    return any(
        getattr(one, name) != getattr(other, name)
        for name in ("labels", "taints", "unschedulable", "allocatable", "most_pods")
    )
