"""What a cluster has at one moment: the same for all pods and nodes, and never changed again."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.allocator.model import DeviceClass, Node, PoolId
from dragoon.allocator.pools import Pool, PoolSlices, pools_for
from dragoon.allocator.usage import PoolUsage

_REMEMBERED: Final = 64
"""Different wishes whose misfits are remembered."""


@dataclass(slots=True, eq=False)
class _Seen:
    """The pools of a node, and what they were made from."""

    labels: Mapping[str, str]
    sources: tuple[PoolSlices, ...]
    pools: tuple[Pool, ...]


class Memory:
    """What successive snapshots of one cluster have found out. Only saves work: it may be empty.

    The pools of each node are kept until a slice or a label of it changes; that a wish does not
    fit on a node, until what is held of its pools changes.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, _Seen] = {}
        self._misfits: dict[Hashable, dict[str, tuple[Any, ...]]] = {}

    def pools(self, node: Node, sources: tuple[PoolSlices, ...]) -> tuple[Pool, ...]:
        """The pools of a node that sees these. Raises NodeSelectorError."""
        seen = self._nodes.get(node.name)
        if seen is None or not is_same(seen.sources, sources) or seen.labels != node.labels:
            seen = _Seen(dict(node.labels), sources, pools_for(node, sources))
            self._nodes[node.name] = seen
        return seen.pools

    def forget(self, node: str) -> None:
        """Drops what is known of a node that is gone."""
        self._nodes.pop(node, None)
        for by_node in self._misfits.values():
            by_node.pop(node, None)

    def misfits(self, wish: Hashable) -> dict[str, tuple[Any, ...]]:
        """Where the wish did not fit: by node, the state in which that was so. To be added to."""
        known = self._misfits.get(wish)
        if known is None:
            if len(self._misfits) >= _REMEMBERED:
                del self._misfits[next(iter(self._misfits))]
            known = self._misfits[wish] = {}
        return known


def is_same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Whether both hold the very same objects, and any at all."""
    if not left or len(left) != len(right):
        return False
    return all(one is other for one, other in zip(left, right, strict=True))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Classes, pools and what is held of them.

    by_node: pools that have a slice for the node by name. floating: pools that have a slice which
    says otherwise for which nodes it is.
    """

    classes: Mapping[str, DeviceClass]
    pools: Mapping[PoolId, PoolSlices]
    by_node: Mapping[str, tuple[PoolId, ...]]
    floating: tuple[PoolId, ...]
    usage: Mapping[PoolId, PoolUsage]
    memory: Memory = field(default_factory=Memory, compare=False)

    def pools_on(self, node: Node) -> tuple[Pool, ...]:
        """The pools of a node in the order of the search. Raises NodeSelectorError."""
        ids: Iterable[PoolId] = self.by_node.get(node.name, ())
        if self.floating:
            ids = dict.fromkeys((*ids, *self.floating))
        return self.memory.pools(node, tuple(self.pools[one] for one in ids))
