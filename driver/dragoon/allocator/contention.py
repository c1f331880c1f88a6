"""What claims hold of a pool beyond what there is: a double allocation, by whomever.

kube-scheduler never sees one: it keeps the names of devices that are in use in a set. A device
held as a whole by two claims, or by one and shared by another; shares beyond a capacity; devices
that exclude each other by counters: all are contended.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dragoon.allocator.model import Device, PoolId, Slice
from dragoon.allocator.pools import PoolSlices, counters_of
from dragoon.allocator.snapshot import Snapshot
from dragoon.allocator.usage import UNUSED, Hold, PoolUsage


class Contention(NamedTuple):
    """One thing that is held beyond what there is.

    what: the device, its capacity (`memory of NAME`), or a counter (`counter NAME of SET`). claims:
    who holds it, by `namespace/name`, sorted; at least two. devices: through which devices, sorted.
    """

    pool: PoolId
    what: str
    claims: tuple[str, ...]
    devices: tuple[str, ...]


def contentions(
    snapshot: Snapshot, pools: Iterable[PoolId], more: Iterable[Hold] = ()
) -> tuple[Contention, ...]:
    """What is held beyond what there is in these pools; more: holds not in the snapshot yet."""
    extra: dict[PoolId, list[Hold]] = {}
    for hold in more:
        extra.setdefault(hold.pool, []).append(hold)
    found: list[Contention] = []
    for pool in dict.fromkeys(pools):
        usage = snapshot.usage.get(pool, UNUSED).changed((), extra.get(pool, ()), 0)
        if usage:
            found += _in_pool(pool, snapshot.pools.get(pool), usage)
    return tuple(found)


def published(pool: PoolSlices | None) -> Mapping[str, Device]:
    """The devices of a pool by name, as its newest generation has them."""
    return {
        device.name: device
        for one in _newest(pool)
        if not one.counter_sets
        for device in one.devices
    }


def _newest(pool: PoolSlices | None) -> list[Slice]:
    slices = [] if pool is None else [one for one in pool.slices if not one.ignored]
    newest = max((one.generation for one in slices), default=0)
    return [one for one in slices if one.generation == newest]


def _in_pool(id_: PoolId, pool: PoolSlices | None, usage: PoolUsage) -> Iterator[Contention]:
    for device in sorted(usage.exclusive):
        claims = {hold.claim for hold in (*usage.exclusive[device], *usage.shared.get(device, ()))}
        if len(claims) > 1:
            yield Contention(id_, device, tuple(sorted(claims)), (device,))
    yield from _shares(id_, published(pool), usage)
    yield from _counters(id_, pool, usage)


def _shares(id_: PoolId, devices: Mapping[str, Device], usage: PoolUsage) -> Iterator[Contention]:
    for name in sorted(usage.shared):
        claims = {hold.claim for hold in usage.shared[name]}
        device = devices.get(name)
        if device is None or len(claims) < 2 or name in usage.exclusive:
            continue
        limits = {capacity: found.limit for capacity, found in device.facts.capacity}
        used = usage.consumed(name)
        over = [one for one, amount in used.items() if amount > limits.get(one, amount)]
        if over:
            yield Contention(id_, f"{over[0]} of {name}", tuple(sorted(claims)), (name,))


def _counters(id_: PoolId, pool: PoolSlices | None, usage: PoolUsage) -> Iterator[Contention]:
    counters = counters_of(_newest(pool))
    if counters is None:
        return
    slack = usage.slack(counters)
    seen: set[tuple[str, ...]] = set()
    for (set_name, name), left in sorted(slack.left.items()):
        if left >= 0:
            continue
        devices = tuple(
            sorted(
                device
                for device, takes in counters.consumers.items()
                if usage.is_allocated(device) and (set_name, name) in {key for key, _ in takes}
            )
        )
        claims = {
            hold.claim
            for device in devices
            for hold in (*usage.exclusive.get(device, ()), *usage.shared.get(device, ()))
        }
        # One GPU has many counters: the same devices exclude each other once.
        if len(claims) > 1 and devices not in seen:
            seen.add(devices)
            yield Contention(id_, f"counter {name} of {set_name}", tuple(sorted(claims)), devices)
