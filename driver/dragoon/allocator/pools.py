"""Which pools can be used on a node, which cannot and why, and the order of their devices.

Source: `pools_incubating.go` of k8s.io/dynamic-resource-allocation 0.37.2. In one
point this is stricter: where slices of one generation disagree about their number, the Go code
takes whichever comes first; here such a pool is never used (case C15).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoon.allocator.model import Counts, Device, Node, PoolId, Slice, Taint, TaintRule
from dragoon.allocator.nodes import matches


@dataclass(frozen=True, slots=True, eq=False)
class PoolSlices:
    """All slices of a pool, of all generations and nodes, by name; rules: those that taint it."""

    id: PoolId
    slices: tuple[Slice, ...]
    rules: tuple[TaintRule, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Counters:
    """The counters of a pool, and what each device of it takes of them, on whatever node.

    values: in nano units. consumers: devices without counters are left out.
    """

    values: dict[tuple[str, str], int]
    consumers: dict[str, Counts]


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool as a node sees it.

    slices: those with devices for this node, in the order of the search. counters: None where no
    device of it has any. problem: why no device of the pool can be allocated, empty if they can.
    invalid: the problem is a wrong pool, not one that is being updated. candidates: what was
    already found out, by what was asked (candidates.py).
    """

    id: PoolId
    node: Node
    slices: tuple[Slice, ...] = ()
    counters: Counters | None = None
    rules: tuple[TaintRule, ...] = ()
    problem: str = ""
    invalid: bool = False
    candidates: dict[Any, Any] = field(default_factory=dict)

    def devices(self) -> Iterator[tuple[Slice, Device]]:
        """The devices in order, with the slice each is from."""
        return ((slice_, device) for slice_ in self.slices for device in slice_.devices)

    def taints(self, device: Device) -> Sequence[Taint]:
        """The taints of a device of this pool: its own, then those of rules."""
        if not self.rules:
            return device.taints
        return (
            *device.taints,
            *(rule.taint for rule in self.rules if rule.device in {None, device.name}),
        )


def pools_for(node: Node, pools: Iterable[PoolSlices]) -> tuple[Pool, ...]:
    """The pools that have a slice for the node, in the order kube-scheduler tries them.

    Raises NodeSelectorError for a slice or device whose node selector is wrong.
    """
    seen = [pool for one in pools if (pool := _pool(one, node)) is not None]
    # Pools with a device that waits for binding conditions come last.
    return tuple(sorted(seen, key=lambda pool: (_waits(pool), pool.id)))


def _pool(pool: PoolSlices, node: Node) -> Pool | None:
    everywhere = [one for one in pool.slices if not one.ignored]
    here = [one for one in everywhere if _is_relevant(one, node)]
    if not here:
        return None
    generation = max(one.generation for one in here)
    here = [one for one in here if one.generation == generation]
    same = [one for one in everywhere if one.generation == generation]
    counts = {one.count for one in here}
    if len(here) != here[0].count or len(counts) > 1:
        if max(one.generation for one in pool.slices) > generation:
            return None
        if len(counts) > 1 or len(same) != here[0].count:
            return Pool(pool.id, node, problem=_incomplete(generation, same))
    else:
        same = here
    # A slice with counter sets has no devices: the API server forbids both in one.
    slices = tuple(one for one in here if not one.counter_sets)
    problem = _duplicate_device(slices) or _wrong_counters(same)
    if problem:
        return Pool(pool.id, node, problem=f"invalid: {problem}", invalid=True)
    return Pool(pool.id, node, slices, counters_of(same), pool.rules)


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
        if device.name in seen:
            return f"duplicate device name {device.name}"
        seen.add(device.name)
    return ""


def _wrong_counters(slices: list[Slice]) -> str:
    """Says what is wrong with counter sets and their consumers, empty if nothing is."""
    sets: set[str] = set()
    for name in (name for one in slices for name in one.counter_sets):
        if name in sets:
            return f"duplicate counter set name {name}"
        sets.add(name)
    known = {counter for one in slices for counter, _ in one.counters}
    for device in (device for one in slices if not one.counter_sets for device in one.devices):
        for counter, _ in device.counters:
            if counter[0] not in sets:
                return f"counter set {counter[0]} not found"
            if counter not in known:
                return f"counter {counter[1]} not found in counter set {counter[0]}"
    return ""


def counters_of(slices: list[Slice]) -> Counters | None:
    """The counters of the slices of one generation, None where no device takes any."""
    consumers: dict[str, Counts] = {}
    for device in (device for one in slices if not one.counter_sets for device in one.devices):
        if device.counters:
            # Two nodes may have a device of one name: whoever holds it holds both.
            consumers[device.name] = consumers.get(device.name, ()) + device.counters
    if not consumers:
        return None
    return Counters({key: value for one in slices for key, value in one.counters}, consumers)


def _waits(pool: Pool) -> bool:
    return any(
        name == "bindingConditions"
        for _, device in pool.devices()
        for name, _ in device.facts.conditions
    )
