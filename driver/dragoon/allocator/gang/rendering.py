"""Records back to raw objects, for the verifier: it works on raw objects only.

The large raw objects are dropped once they are read; the records keep all that decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from dragoon.allocator.amounts import Capacity, Policy
from dragoon.allocator.gang.model import NodeFacts
from dragoon.allocator.model import (
    Counts,
    Device,
    DeviceClass,
    Facts,
    NodeSelection,
    Slice,
    Taint,
    TaintRule,
    Toleration,
)
from dragoon.allocator.usage import Hold
from dragoon.quantity import Quantity

_NANO: Final = -9
_KEPT: Final = 4_096


def raw_node(node: NodeFacts) -> dict[str, Any]:
    """Name and labels."""
    return {"metadata": {"name": node.name, "labels": dict(node.labels)}}


def raw_class(class_: DeviceClass) -> dict[str, Any]:
    """A DeviceClass."""
    spec: dict[str, Any] = {
        "selectors": [{"cel": {"expression": text}} for text in class_.selectors],
        "config": list(class_.config),
    }
    return {"metadata": {"name": class_.name}, "spec": spec}


def raw_slice(slice_: Slice, tolerated: Sequence[Toleration]) -> dict[str, Any]:
    """A ResourceSlice without the taints that are tolerated."""
    return {
        "metadata": {"name": slice_.name},
        "spec": {
            "driver": slice_.pool.driver,
            "pool": {
                "name": slice_.pool.pool,
                "generation": slice_.generation,
                "resourceSliceCount": slice_.count,
            },
            "devices": [_device(one, tolerated) for one in slice_.devices],
            "sharedCounters": [
                {"name": name, "counters": _counters(slice_.counters, name)}
                for name in slice_.counter_sets
            ],
            **({"perDeviceNodeSelection": True} if slice_.nodes is None else _place(slice_.nodes)),
        },
    }


def raw_rule(rule: TaintRule) -> dict[str, Any]:
    """A DeviceTaintRule."""
    selector = {"driver": rule.driver, "pool": rule.pool, "device": rule.device}
    return {
        "metadata": {"name": rule.name},
        "spec": {"taint": _taint(rule.taint), "deviceSelector": selector},
    }


def raw_holder(holds: Iterable[Hold]) -> dict[str, Any]:
    """A claim that holds all of these."""
    results = [
        {
            "driver": hold.pool.driver,
            "pool": hold.pool.pool,
            "device": hold.device,
            **({"shareID": hold.share} if hold.share else {}),
            "consumedCapacity": {name: _text(amount) for name, amount in hold.consumed},
        }
        for hold in holds
    ]
    return {"status": {"allocation": {"devices": {"results": results}}}}


def is_tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    """Whether any of the tolerations accepts the taint."""
    return any(one.tolerates(taint) for one in tolerations)


def _device(device: Device, tolerated: Sequence[Toleration]) -> dict[str, Any]:
    raw = {
        "name": device.name,
        **_facts(device.facts),
        "consumesCounters": _consumption(device.counters),
        "taints": [_taint(one) for one in device.taints if not is_tolerated(one, tolerated)],
    }
    return raw if device.nodes is None else raw | _place(device.nodes)


def _facts(facts: Facts) -> dict[str, Any]:
    return {
        "attributes": {
            name: {kind: list(value) if kind.endswith("s") else value}
            for name, kind, value in facts.attributes
        },
        "capacity": {name: _capacity(one) for name, one in facts.capacity},
        "allowMultipleAllocations": facts.multiple,
        "bindsToNode": facts.binds_to_node,
        **{name: list(value) for name, value in facts.conditions},
    }


@lru_cache(maxsize=_KEPT)
def _capacity(capacity: Capacity) -> dict[str, Any]:
    if capacity.policy is None:
        return {"value": capacity.text}
    return {"value": capacity.text, "requestPolicy": _policy(capacity.policy)}


def _policy(policy: Policy) -> dict[str, Any]:
    raw: dict[str, Any] = _set(default=policy.default)
    if policy.values:
        raw["validValues"] = [str(one) for one in policy.values]
    if policy.has_range:
        raw["validRange"] = _set(min=policy.least, max=policy.most, step=policy.step)
    return raw


def _set(**amounts: Quantity | None) -> dict[str, str]:
    return {name: str(one) for name, one in amounts.items() if one is not None}


@lru_cache(maxsize=_KEPT)
def _consumption(counts: Counts) -> list[dict[str, Any]]:
    """Shared by devices that take the same: nobody changes what is rendered."""
    return [
        {"counterSet": name, "counters": _counters(counts, name)}
        for name in dict.fromkeys(counter[0] for counter, _ in counts)
    ]


def _counters(counts: Counts, name: str) -> Mapping[str, Any]:
    return {
        counter[1]: {"value": _text(amount)} for counter, amount in counts if counter[0] == name
    }


@lru_cache(maxsize=_KEPT)
def _text(nanos: int) -> str:
    return str(Quantity(nanos, _NANO))


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}


def _place(nodes: NodeSelection) -> dict[str, Any]:
    return {
        "nodeName": nodes.node_name,
        "allNodes": nodes.all_nodes,
        "nodeSelector": nodes.selector,
    }
