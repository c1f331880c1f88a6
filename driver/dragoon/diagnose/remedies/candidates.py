"""Changes of a claim that could make it fit, from what the devices at hand are like."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from dragoon import quantity
from dragoon.api.names import KEEPS_OFF
from dragoon.diagnose.linting.devices import published
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.remedies import selectors
from dragoon.diagnose.remedies.change import MOST, Change, Fields, edited, percent, requests
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import InvalidInputError
from dragoon.quantity import Quantity

_MAX_DEVICES: Final = 32
"""Devices of one claim (resource.k8s.io/v1 AllocationResultsMaxSize)."""
_MIB: Final = 2**20


def changes(claim: Raw, snapshot: ClusterSnapshot) -> list[Change]:
    """Everything that could be changed in a claim, the smallest change first.

    snapshot: of the nodes that are looked at.
    """
    devices = [device.raw for device in published(snapshot.slices)]
    sizes = _sizes(devices)
    taints = [mapping(one) for device in devices for one in listed(device.get("taints"))]
    taints += [mapping(mapping(one.get("spec")).get("taint")) for one in snapshot.taint_rules]
    found: list[Change] = []
    for fields in requests(claim):
        found += selectors.changes(claim, fields, sizes)
        found += _amounts(claim, fields, sizes, snapshot)
        found += _counts(claim, fields, len(devices))
        found += _tolerations(claim, fields, taints)
        found += _classes(claim, fields, snapshot)
    found += _constraints(claim)
    return sorted(found, key=lambda one: one.size)


def _sizes(devices: Iterable[Raw]) -> dict[str, list[Quantity]]:
    """The different amounts of each capacity that the devices have, the largest first."""
    found: dict[str, set[Quantity]] = {}
    for device in devices:
        for name, entry in mapping(device.get("capacity")).items():
            amount = _parsed(mapping(entry).get("value"))
            if amount is not None:
                found.setdefault(str(name), set()).add(amount)
    return {name: sorted(amounts, reverse=True) for name, amounts in found.items()}


def _parsed(amount: Any) -> Quantity | None:
    """The quantity, None for what is none."""
    try:
        return quantity.parse(str(amount))
    except InvalidInputError:
        return None


def _amounts(
    claim: Raw, fields: Fields, sizes: dict[str, list[Quantity]], snapshot: ClusterSnapshot
) -> Iterator[Change]:
    """Less of a capacity: what a device has, or what others have left of one."""
    wanted = mapping(mapping(fields.raw.get("capacity")).get("requests"))
    for name, raw in wanted.items():
        amount = _parsed(raw)
        if amount is None:
            continue
        free = _free(str(name), snapshot)
        smaller = sorted(
            {one for one in (*sizes.get(str(name), ()), *free) if one < amount and one.sign > 0},
            reverse=True,
        )
        for one in smaller[:MOST]:
            path = (*fields.path, "capacity", "requests", str(name))
            changed = edited(claim, path, str(one))
            yield Change("amount", percent(amount, one), changed, path, str(amount), str(one))


def _free(name: str, snapshot: ClusterSnapshot) -> Iterator[Quantity]:
    """What is left of a capacity on each device of which others hold a part."""
    held: dict[tuple[str, str, str], Quantity] = {}
    for claim in snapshot.claims:
        allocation = mapping(mapping(claim.get("status")).get("allocation"))
        for result in map(mapping, listed(mapping(allocation.get("devices")).get("results"))):
            amount = _parsed(mapping(result.get("consumedCapacity")).get(name))
            if amount is not None:
                key = (
                    text(result.get("driver")),
                    text(result.get("pool")),
                    text(result.get("device")),
                )
                held[key] = held[key] + amount if key in held else amount
    for device in published(snapshot.slices):
        driver, _, rest = device.name.partition("/")
        pool, _, short = rest.rpartition("/")
        total = _parsed(mapping(mapping(device.raw.get("capacity")).get(name)).get("value"))
        if total is not None and (driver, pool, short) in held:
            left = (total - held[driver, pool, short]).as_approximate_float()
            step = _MIB if left >= _MIB else 1
            yield quantity.parse(_plain(int(left) // step * step))


def _plain(amount: int) -> str:
    whole, rest = divmod(amount, _MIB)
    return f"{whole}Mi" if whole and not rest else str(amount)


def _counts(claim: Raw, fields: Fields, devices: int) -> Iterator[Change]:
    """Fewer devices; instead of all of them a number."""
    if fields.raw.get("allocationMode") == "All":
        for count in range(min(devices, _MAX_DEVICES), 0, -1):
            number = {**fields.raw, "allocationMode": "ExactCount", "count": count}
            changed = edited(claim, fields.path, number)
            path = (*fields.path, "allocationMode")
            yield Change("count", devices - count, changed, path, "All", f"count: {count}")
        return
    count = fields.raw.get("count", 1)
    for fewer in range(count - 1, 0, -1) if isinstance(count, int) else ():
        path = (*fields.path, "count")
        changed = edited(claim, path, fewer)
        yield Change("count", count - fewer, changed, path, str(count), str(fewer))


def _tolerations(claim: Raw, fields: Fields, taints_there: Sequence[Raw]) -> Iterator[Change]:
    """A toleration for a taint that is there."""
    taints = {
        (text(taint.get("key")), text(taint.get("value")), text(taint.get("effect")))
        for taint in taints_there
        if taint.get("effect") in KEEPS_OFF
    }
    known = listed(fields.raw.get("tolerations"))
    for key, value, effect in sorted(taints)[:MOST]:
        toleration: dict[str, Any] = {"key": key, "operator": "Exists", "effect": effect}
        if value:
            toleration |= {"operator": "Equal", "value": value}
        if toleration not in known:
            path = (*fields.path, "tolerations")
            changed = edited(claim, path, [*known, toleration])
            after = f"{key}{f'={value}' if value else ''}:{effect}"
            yield Change("toleration", len(known) + 1, changed, path, "", after)


def _classes(claim: Raw, fields: Fields, snapshot: ClusterSnapshot) -> Iterator[Change]:
    """Another class."""
    path, now = (*fields.path, "deviceClassName"), text(fields.raw.get("deviceClassName"))
    names = sorted({identity(one)[1] for one in snapshot.classes} - {now, ""})
    for name in names[:MOST]:
        yield Change("class", 1, edited(claim, path, name), path, now, name)


def _constraints(claim: Raw) -> Iterator[Change]:
    """Without one of the constraints."""
    devices = mapping(mapping(claim.get("spec")).get("devices"))
    for index, one in enumerate(map(mapping, listed(devices.get("constraints")))):
        name = text(one.get("matchAttribute")) or text(one.get("distinctAttribute"))
        path = ("spec", "devices", "constraints", index)
        yield Change("constraint", 1, edited(claim, path, None), path, name, "")
