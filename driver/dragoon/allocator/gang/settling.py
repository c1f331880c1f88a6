"""What a snapshot and members are like when a plan has been carried out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dragoon.allocator.gang.model import NodeFacts, Placement, PlacementSnapshot, PodAsk
from dragoon.allocator.model import PoolId, Raw
from dragoon.allocator.usage import UNUSED, Hold, holds_of

_SERIAL: Final = -1
"""Usages of copies are remembered by nobody."""


def with_placements(
    snapshot: PlacementSnapshot, placements: Iterable[Placement]
) -> PlacementSnapshot:
    """A copy in which these members are on their nodes and hold their devices."""
    holds: dict[PoolId, list[Hold]] = defaultdict(list)
    new: dict[str, list[PodAsk]] = defaultdict(list)
    for one in placements:
        if not one.pod.node:
            new[one.node].append(one.pod)
        for uid, allocation in one.allocations.items():
            for hold in holds_of(allocation, uid):
                holds[hold.pool].append(hold)
    usage = dict(snapshot.cluster.usage)
    for pool, more in holds.items():
        usage[pool] = usage.get(pool, UNUSED).changed((), more, _SERIAL)
    return replace(
        snapshot,
        cluster=replace(snapshot.cluster, usage=usage),
        nodes=tuple(_with_pods(node, new[node.name]) for node in snapshot.nodes),
    )


def settled(placements: Sequence[Placement]) -> dict[str, PodAsk]:
    """The members, by UID, when they are bound and their claims are allocated."""
    given = {uid: raw for one in placements for uid, raw in one.allocations.items()}
    return {
        one.pod.uid: replace(with_allocated(one.pod, given), node=one.node) for one in placements
    }


def with_allocated(pod: PodAsk, given: Mapping[str, Raw]) -> PodAsk:
    """The member with its claims allocated as given, by UID."""
    return replace(
        pod,
        claims=tuple(
            _allocated(raw, given[uid]) if (uid := str(raw["metadata"]["uid"])) in given else raw
            for raw in pod.claims
        ),
    )


def _allocated(claim: Raw, allocation: Raw) -> Raw:
    return {**claim, "status": {**(claim.get("status") or {}), "allocation": allocation}}


def _with_pods(node: NodeFacts, pods: list[PodAsk]) -> NodeFacts:
    used = dict(node.used)
    for pod in pods:
        for name, amount in pod.requests.items():
            used[name] = used.get(name, 0) + amount
    return replace(node, used=used, pods=node.pods + len(pods)) if pods else node
