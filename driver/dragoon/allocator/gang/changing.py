"""What if: copies of a snapshot in which something is different."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Final

from dragoon.allocator.gang.model import NodeFacts, PlacementSnapshot
from dragoon.allocator.model import NodeSelection, PoolId, Slice
from dragoon.allocator.pools import PoolSlices
from dragoon.allocator.snapshot import Memory
from dragoon.allocator.usage import PoolUsage

_CONDITIONS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""How the keys of taints begin that come and go with the condition of a node."""
_SERIAL: Final = -2
"""Usages of copies are remembered by nobody."""


def share_ids() -> Callable[[], str]:
    """Share IDs that nobody has: nothing is written with them."""
    numbers = count(1)
    return lambda: f"what-if-{next(numbers)}"


def emptied(snapshot: PlacementSnapshot) -> PlacementSnapshot:
    """The cluster when all others are gone and every node is well: no claims, pods and cordons."""
    return replace(
        snapshot,
        cluster=replace(snapshot.cluster, usage={}),
        nodes=tuple(map(_well, snapshot.nodes)),
    )


def _well(node: NodeFacts) -> NodeFacts:
    taints = tuple(one for one in node.taints if not one.key.startswith(_CONDITIONS))
    return replace(node, used={}, pods=0, unschedulable=False, taints=taints)


def without_claims(
    usage: Mapping[PoolId, PoolUsage], claims: frozenset[str]
) -> dict[PoolId, PoolUsage]:
    """What is held when these claims, `namespace/name`, hold nothing."""
    changed: dict[PoolId, PoolUsage] = {}
    for pool, its in usage.items():
        gone = [
            hold
            for holds in (*its.exclusive.values(), *its.shared.values())
            for hold in holds
            if hold.claim in claims
        ]
        changed[pool] = its.changed(gone, (), _SERIAL) if gone else its
    return changed


def released(snapshot: PlacementSnapshot, claims: frozenset[str]) -> PlacementSnapshot:
    """The cluster when these claims, `namespace/name`, hold nothing."""
    usage = without_claims(snapshot.cluster.usage, claims)
    return replace(snapshot, cluster=replace(snapshot.cluster, usage=usage))


def with_nodes(
    snapshot: PlacementSnapshot, names: Iterable[str], change: Callable[[NodeFacts], NodeFacts]
) -> PlacementSnapshot:
    """The cluster with some nodes changed."""
    wanted = frozenset(names)
    nodes = tuple(change(one) if one.name in wanted else one for one in snapshot.nodes)
    return replace(snapshot, nodes=nodes)


def with_more_like(snapshot: PlacementSnapshot, name: str, count: int) -> PlacementSnapshot:
    """The cluster with that many more nodes like one, empty, each with pools of its own."""
    cluster = snapshot.cluster
    model = next(one for one in snapshot.nodes if one.name == name)
    pools, by_node = dict(cluster.pools), dict(cluster.by_node)
    nodes = list(snapshot.nodes)
    for number in range(1, count + 1):
        new = f"{name}+{number}"
        labels = {**model.labels, "kubernetes.io/hostname": new}
        nodes.append(replace(model, name=new, labels=labels, used={}, pods=0, unschedulable=False))
        copies = [_copied(cluster.pools[id_], name, new) for id_ in cluster.by_node.get(name, ())]
        pools |= {one.id: one for one in copies}
        by_node[new] = tuple(sorted(one.id for one in copies))
    changed = replace(cluster, pools=pools, by_node=by_node, memory=Memory())
    return replace(snapshot, cluster=changed, nodes=tuple(nodes))


def _copied(pool: PoolSlices, old: str, new: str) -> PoolSlices:
    """The pool of another node; slices for other nodes than the old one stay behind."""
    id_ = PoolId(pool.id.driver, f"{pool.id.pool}+{new}")

    def copy(one: Slice) -> Slice:
        return replace(one, pool=id_, nodes=NodeSelection(node_name=new))

    mine = (one for one in pool.slices if one.nodes is not None and one.nodes.node_name == old)
    return PoolSlices(id_, tuple(map(copy, mine)))
