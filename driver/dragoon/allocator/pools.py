"""Which pools can be used on a node, which cannot and why, and the order of their devices.

Source: dra-api.md C.3, `pools_incubating.go` of k8s.io/dynamic-resource-allocation 0.37.2. In one
point this is stricter: where slices of one generation disagree about their number, the Go code
takes whichever comes first; here such a pool is never used (case C15).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from dragoon.allocator.model import Device, Node, PoolId, Slice
from dragoon.allocator.nodes import matches


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool as a node sees it.

    slices: those with devices for this node, in the order of the search. problem: why no device
    of the pool can be allocated, empty if they can. invalid: the problem is a wrong pool, not one
    that is being updated.
    """

    id: PoolId
    slices: tuple[Slice, ...] = ()
    problem: str = ""
    invalid: bool = False

    def devices(self) -> Iterable[tuple[Slice, Device]]:
        """The devices in order, with the slice each is from."""
        return ((slice_, device) for slice_ in self.slices for device in slice_.devices)


def pools_for(node: Node, slices: Iterable[Slice]) -> tuple[Pool, ...]:
    """The pools that have a slice for the node, in the order kube-scheduler tries them."""
    usable = [one for one in slices if not _has_compatibility_groups(one)]
    by_pool = groupby(sorted(usable, key=lambda one: (one.pool, one.name)), lambda one: one.pool)
    pools = [pool for id_, group in by_pool if (pool := _pool(id_, tuple(group), node)) is not None]
    # Pools with a device that waits for binding conditions come last.
    return tuple(sorted(pools, key=lambda pool: (_waits(pool), pool.id)))


def _pool(id_: PoolId, everywhere: tuple[Slice, ...], node: Node) -> Pool | None:
    here = [one for one in everywhere if _is_relevant(one, node)]
    if not here:
        return None
    generation = max(one.generation for one in here)
    here = [one for one in here if one.generation == generation]
    same = [one for one in everywhere if one.generation == generation]
    counts = {one.count for one in same}
    if len(here) != here[0].count or len(counts) > 1:
        newest = max(one.generation for one in everywhere)
        if newest > generation:
            return None
        if len(counts) > 1 or len(same) != here[0].count:
            return Pool(id_, problem=_incomplete(generation, same))
    else:
        same = here
    # A slice with counter sets has no devices: the API server forbids both in one.
    slices = tuple(one for one in here if not one.counter_sets)
    problem = _duplicate_device(slices) or _wrong_counters(same)
    if problem:
        return Pool(id_, problem=f"invalid: {problem}", invalid=True)
    return Pool(id_, slices)


def _is_relevant(one: Slice, node: Node) -> bool:
    if one.nodes is not None:
        return matches(one.nodes, node)
    return any(device.nodes is not None and matches(device.nodes, node) for device in one.devices)


def _incomplete(generation: int, slices: list[Slice]) -> str:
    expected = " or ".join(map(str, sorted({one.count for one in slices})))
    return f"being updated: generation {generation} has {len(slices)} slices, expected {expected}"


def _duplicate_device(slices: tuple[Slice, ...]) -> str:
    """Says which device name is there twice, empty if none is."""
    seen: set[str] = set()
    for device in (device for one in slices for device in one.devices):
        if device.id.device in seen:
            return f"duplicate device name {device.id.device}"
        seen.add(device.id.device)
    return ""


def _wrong_counters(slices: list[Slice]) -> str:
    """Says what is wrong with counter sets and their consumers, empty if nothing is."""
    sets: dict[str, tuple[str, ...]] = {}
    for name, counters in (one for slice_ in slices for one in slice_.counter_sets):
        if name in sets:
            return f"duplicate counter set name {name}"
        sets[name] = counters
    devices = (device for one in slices if not one.counter_sets for device in one.devices)
    for name, counters in (consumption for device in devices for consumption in device.counters):
        if name not in sets:
            return f"counter set {name} not found"
        missing = [counter for counter in counters if counter not in sets[name]]
        if missing:
            return f"counter {missing[0]} not found in counter set {name}"
    return ""


def _waits(pool: Pool) -> bool:
    return any("bindingConditions" in device.conditions for _, device in pool.devices())


def _has_compatibility_groups(one: Slice) -> bool:
    """Kube-scheduler ignores such a slice while the gate is off; its pool is then incomplete."""
    return any(device.has_compatibility_groups for device in one.devices)
