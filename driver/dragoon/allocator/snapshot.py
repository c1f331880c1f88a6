"""What a cluster has at one moment: the same for all pods and nodes, and never changed again."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoon.allocator.model import DeviceClass, Node, PoolId
from dragoon.allocator.pools import Pool, PoolSlices, pools_for
from dragoon.allocator.usage import PoolUsage

_REMEMBERED: Final = 64
"""Different wishes whose misfits are remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """The pools of a node, and what they were made from. serial: another one for each time."""

    serial: int
    pools: tuple[Pool, ...]
    labels: Mapping[str, str]
    sources: tuple[PoolSlices, ...]

    def is_of(self, node: Node, sources: tuple[PoolSlices, ...]) -> bool:
        """Whether it would be made of the same again."""
        return (
            len(self.sources) == len(sources)
            and all(one is other for one, other in zip(self.sources, sources, strict=True))
            and self.labels == node.labels
        )


State = tuple[int, ...]
"""A node's state by serials: of its site, then of what is held of each pool."""


class Memory:
    """What successive snapshots of one cluster have found out. Only saves work: it may be empty.

    The pools of each node are kept until a slice or a label of it changes; that a wish does not
    fit on a node, until what is held of its pools changes.
    """

    def __init__(self) -> None:
        self._sites: dict[str, Site] = {}
        self._misfits: dict[Hashable, dict[str, State]] = {}
        self._serial = 0

    def site(self, node: Node, sources: tuple[PoolSlices, ...]) -> Site:
        """The pools of a node that sees these. Raises NodeSelectorError."""
        site = self._sites.get(node.name)
        if site is None or not site.is_of(node, sources):
            self._serial += 1
            site = Site(self._serial, pools_for(node, sources), dict(node.labels), sources)
            self._sites[node.name] = site
        return site

    def forget(self, node: str, left: Collection[str]) -> None:
        """Drops what is known of a node that is gone. left: the names of those that there are."""
        known: list[dict[str, Any]] = [self._sites, *self._misfits.values()]
        for by_node in known:
            by_node.pop(node, None)
            if len(by_node) > len(left):
                # A decision that was under way in its thread has brought others back.
                for late in set(by_node).difference(left):
                    by_node.pop(late, None)

    def misfits(self, wish: Hashable) -> dict[str, State]:
        """Where the wish did not fit: by node, the state in which that was so. To be added to."""
        known = self._misfits.get(wish)
        if known is None:
            if len(self._misfits) >= _REMEMBERED:
                del self._misfits[next(iter(self._misfits))]
            known = self._misfits[wish] = {}
        return known


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

    def site(self, node: Node) -> Site:
        """The pools of a node in the order of the search. Raises NodeSelectorError."""
        ids: Iterable[PoolId] = self.by_node.get(node.name, ())
        if self.floating:
            ids = dict.fromkeys((*ids, *self.floating))
        return self.memory.site(node, tuple(self.pools[one] for one in ids))
