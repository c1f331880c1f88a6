"""One device of a pool, and the counters that keep devices of one card apart."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dragoon.api import limits
from dragoon.api.quantities import whole_of
from dragoon.kube.port import Object
from dragoon.quantity import Format, Quantity

_NOT_IN_LABEL: Final = re.compile(r"[^A-Za-z0-9_.-]+", re.ASCII)

Amounts = Mapping[str, int]
"""How much of each counter: whole numbers, bytes for `memory`."""


@dataclass(frozen=True, slots=True)
class Taint:
    """Keeps claims off a device unless they tolerate it. value tells people why."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    @classmethod
    def because(cls, key: str, reason: str, effect: str = "NoSchedule") -> "Taint":
        """A taint whose value is the reason, as far as a label value can say it."""
        text = _NOT_IN_LABEL.sub("-", reason)[: limits.LABEL_BYTES].strip("-_.")
        return cls(key, text, effect)

    def raw(self) -> Object:
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}


@dataclass(frozen=True, slots=True)
class CounterSet:
    """What one card has to give to all its devices together."""

    name: str
    amounts: Amounts

    def raw(self) -> Object:
        """The set as it stands in a ResourceSlice."""
        return {"name": self.name, "counters": raw_amounts(self.amounts)}


@dataclass(frozen=True, slots=True)
class Device:
    """One device of the pool. attributes and capacity are in the API's form.

    consumes: what it takes from the counter set of its card while it is allocated. shared: it can
    be allocated to several claims at once, which then share out its capacity.
    """

    name: str
    attributes: Mapping[str, Object]
    capacity: Mapping[str, Object]
    taints: tuple[Taint, ...] = ()
    consumes: CounterSet | None = None
    shared: bool = False

    @classmethod
    def of(cls, raw: Mapping[str, Any], counters: CounterSet | None = None) -> "Device":
        """A published device, without its taints.

        counters: what its card has to give now. The device takes what it took of these; a counter
        that is not there any more would make the whole pool invalid.
        """
        took = {
            name: amount
            for name, amount in consumption(raw).items()
            if counters and name in counters.amounts
        }
        return cls(
            raw["name"],
            dict(raw.get("attributes") or {}),
            dict(raw.get("capacity") or {}),
            consumes=CounterSet(counters.name, took) if counters and took else None,
            shared=raw.get("allowMultipleAllocations") is True,
        )

    def raw(self) -> Object:
        """The device as it stands in a ResourceSlice; empty maps are left out."""
        body: Object = {"name": self.name, "attributes": dict(self.attributes)}
        if self.capacity:
            body["capacity"] = dict(self.capacity)
        if self.consumes is not None:
            counters = raw_amounts(self.consumes.amounts)
            body["consumesCounters"] = [{"counterSet": self.consumes.name, "counters": counters}]
        if self.shared:
            body["allowMultipleAllocations"] = True
        if self.taints:
            body["taints"] = [taint.raw() for taint in self.taints]
        return body

    def tainted(self, taint: Taint) -> "Device":
        """The device with one more taint; each key once, the first counts."""
        if any(taint.key == known.key for known in self.taints):
            return self
        return replace(self, taints=(*self.taints, taint))


def raw_amounts(amounts: Amounts) -> Object:
    """Amounts as quantities, in a steady order."""
    return {name: {"value": str(Quantity(amounts[name], format=Format.BINARY))} for name in amounts}


def consumption(raw: Mapping[str, Any]) -> dict[str, int]:
    """What a valid raw device takes of the counters of its card, of which there is one set."""
    found = {
        name: whole_of(counter["value"])
        for consumed in raw.get("consumesCounters") or ()
        for name, counter in consumed["counters"].items()
    }
    return {name: amount for name, amount in found.items() if amount is not None}
