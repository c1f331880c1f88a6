"""Raw ResourceSlices and DeviceTaintRules to records."""

from typing import Any, Final

from dragoon import quantity, semver
from dragoon.allocator.amounts import Capacities, Capacity, Policy
from dragoon.allocator.fields import items, required
from dragoon.allocator.interning import Interner
from dragoon.allocator.model import (
    Attribute,
    Counts,
    Device,
    Facts,
    NodeSelection,
    PoolId,
    Raw,
    Slice,
    Taint,
    TaintRule,
)
from dragoon.errors import InvalidInputError
from dragoon.quantity import Quantity

_SCALARS: Final = ("string", "int", "bool", "version")
_LISTS: Final = tuple(f"{kind}s" for kind in _SCALARS)
_CONDITIONS: Final = ("bindingConditions", "bindingFailureConditions")


def slice_record(raw: Raw, interner: Interner) -> Slice:
    """The record of a ResourceSlice.

    Raises InvalidInputError, naming slice and field, for what the API server would not store.
    """
    name = required(raw, "metadata.name", "ResourceSlice")
    owner = f"ResourceSlice {name}"
    spec = required(raw, "spec", owner)
    driver, pool = required(spec, "driver", owner), required(spec, "pool", owner)
    pool_id = interner.same(PoolId(driver, required(pool, "name", owner)))
    reader = _Reader(pool_id, interner)
    own_selections = bool(spec.get("perDeviceNodeSelection"))
    try:
        devices = tuple(
            reader.device(one, own_selection=own_selections) for one in items(spec, "devices")
        )
        sets = items(spec, "sharedCounters")
        counters = tuple(count for one in sets for count in reader.counts(one["name"], one))
    except (InvalidInputError, KeyError, TypeError) as error:
        wrong = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidInputError(f"{owner}: {wrong}") from error
    return Slice(
        name=name,
        pool=pool_id,
        generation=int(pool.get("generation") or 0),
        count=int(pool.get("resourceSliceCount") or 0),
        nodes=None if own_selections else _node_selection(spec),
        devices=devices,
        counter_sets=tuple(one["name"] for one in sets),
        counters=counters,
        ignored=any(
            consumption.get("compatibilityGroups")
            for device in items(spec, "devices")
            for consumption in items(device, "consumesCounters")
        ),
    )


def rule_record(raw: Raw) -> TaintRule | None:
    """The record of a DeviceTaintRule, None where it has no selector and so taints nothing.

    Raises InvalidInputError naming rule and field.
    """
    name = required(raw, "metadata.name", "DeviceTaintRule")
    owner = f"DeviceTaintRule {name}"
    spec = required(raw, "spec", owner)
    taint = required(spec, "taint", owner)
    selector = spec.get("deviceSelector")
    if selector is None:
        return None
    return TaintRule(
        name,
        Taint(required(taint, "key", owner), taint.get("value") or "", taint.get("effect") or ""),
        selector.get("driver"),
        selector.get("pool"),
        selector.get("device"),
    )


class _Reader:
    """Reads the devices of one slice."""

    def __init__(self, pool: PoolId, interner: Interner) -> None:
        self._pool = pool
        self._interner = interner

    def device(self, raw: Raw, *, own_selection: bool) -> Device:
        name = required(raw, "name", "device")
        try:
            return Device(
                name=self._interner.same(name),
                facts=self._facts(raw),
                counters=self._interner.same(
                    tuple(
                        count
                        for one in items(raw, "consumesCounters")
                        for count in self.counts(one["counterSet"], one)
                    )
                ),
                taints=self._interner.same(
                    tuple(
                        Taint(one["key"], one.get("value") or "", one["effect"])
                        for one in items(raw, "taints")
                    )
                ),
                nodes=_node_selection(raw) if own_selection else None,
            )
        except InvalidInputError as error:
            raise InvalidInputError(f"device {name}: {error.message}") from error

    def counts(self, set_name: str, raw: Raw) -> Counts:
        """The counters of a set, or of what a device consumes of it."""
        return tuple(
            self._interner.same(
                (
                    (set_name, name),
                    quantity.nanos(self._quantity(f"counter {name} of {set_name}", entry["value"])),
                )
            )
            for name, entry in (raw.get("counters") or {}).items()
        )

    def _facts(self, raw: Raw) -> Facts:
        keep = self._interner.same
        attributes: tuple[Attribute, ...] = keep(
            tuple(
                keep(_attribute(name, one)) for name, one in (raw.get("attributes") or {}).items()
            )
        )
        capacity: Capacities = keep(
            tuple(
                keep((name, self._capacity(name, one)))
                for name, one in (raw.get("capacity") or {}).items()
            )
        )
        conditions = tuple((name, items(raw, name)) for name in _CONDITIONS if raw.get(name))
        multiple, binds = bool(raw.get("allowMultipleAllocations")), bool(raw.get("bindsToNode"))
        key = (self._pool.driver, attributes, capacity, multiple, binds, conditions)
        return self._interner.made("facts", key, lambda: Facts(*key, _unreadable(attributes)))

    def _capacity(self, name: str, raw: Raw) -> Capacity:
        policy = raw.get("requestPolicy")
        key = (str(raw.get("value")), repr(policy))
        return self._interner.made("capacity", key, lambda: self._read_capacity(name, raw))

    def _read_capacity(self, name: str, raw: Raw) -> Capacity:
        owner = f"capacity {name}"
        value = self._quantity(owner, raw.get("value"))
        policy: Raw | None = raw.get("requestPolicy")
        if policy is None:
            return Capacity(str(raw["value"]), value, quantity.nanos(value))
        limits = policy.get("validRange") or {}
        parts = (policy.get("default"), *map(limits.get, ("min", "max", "step")))
        default, least, most, step = (
            None if part is None else self._quantity(owner, part) for part in parts
        )
        values = tuple(self._quantity(owner, one) for one in items(policy, "validValues"))
        has_range = policy.get("validRange") is not None
        found = Policy(default, values, has_range, least, most, step)
        return Capacity(str(raw["value"]), value, quantity.nanos(value), found)

    def _quantity(self, owner: str, text: Any) -> Quantity:
        try:
            return self._interner.made("quantity", str(text), lambda: quantity.parse(str(text)))
        except InvalidInputError as error:
            raise InvalidInputError(f"{owner}: {error.message}") from error


def _attribute(name: str, raw: Raw) -> Attribute:
    for kind in _SCALARS:
        if raw.get(kind) is not None:
            return Attribute(name, kind, raw[kind])
    for kind in _LISTS:
        if raw.get(kind) is not None:
            return Attribute(name, kind, tuple(raw[kind]))
    raise InvalidInputError(
        f"attribute {name}: found {', '.join(raw) or 'nothing'}, allowed is one of "
        f"{', '.join((*_SCALARS, *_LISTS))}"
    )


def _unreadable(attributes: tuple[Attribute, ...]) -> str:
    """Says which attribute no selector can be evaluated with, empty if there is none."""
    for name, kind, value in attributes:
        if kind in {"version", "versions"}:
            try:
                _ = [semver.parse(one) for one in ((value,) if kind == "version" else value)]
            except InvalidInputError as error:
                return f"attribute {name}: {error.message}"
    return ""


def _node_selection(raw: Raw) -> NodeSelection:
    return NodeSelection(
        node_name=raw.get("nodeName") or "",
        all_nodes=bool(raw.get("allNodes")),
        selector=raw.get("nodeSelector"),
    )
