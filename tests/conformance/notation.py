"""The notation in which the cases of this folder are written.

Two drivers, A and B, with the classes `a` and `b`; `shared` and `dedicated` select devices of A by
whether they can be allocated more than once. Two nodes, n1 in region r1 and n2 in region r2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Raw = dict[str, Any]

A: Final = "a.example"
B: Final = "b.example"


@dataclass(frozen=True, slots=True)
class Case:
    """A pod's claims, a cluster, and what they get.

    gives: one line per claim, see `outcomes`; or one word for how the attempt ends without.
    """

    name: str
    claims: Sequence[Raw]
    slices: Sequence[Raw]
    gives: Sequence[str] | str
    held: Sequence[Raw] = ()
    classes: Sequence[Raw] | None = None
    node: str = "n1"

    def arguments(self) -> dict[str, Any]:
        """What `allocate` takes, but for the claims."""
        return {
            "classes": CLASSES if self.classes is None else self.classes,
            "slices": self.slices,
            "allocated_claims": self.held,
            "node": NODES[self.node],
        }

    def named_claims(self) -> list[Raw]:
        """The claims, each with a name."""
        return [
            {**one, "metadata": {"namespace": "default", "name": f"c{n}", "uid": f"u{n}"}}
            for n, one in enumerate(self.claims)
        ]


NODES: Final = {
    name: {"metadata": {"name": name, "labels": {"region": region, "planet": "earth"}}}
    for name, region in (("n1", "r1"), ("n2", "r2"))
}


def _opaque(text: str) -> Raw:
    return {"driver": A, "parameters": {"set": text}}


def device_class(name: str, expression: str, config: str = "") -> Raw:
    """A class with one selector, and perhaps one configuration for the driver of that name."""
    spec: Raw = {"selectors": [{"cel": {"expression": expression}}]}
    if config:
        spec["config"] = [{"opaque": _opaque(config)}]
    return {"metadata": {"name": name}, "spec": spec}


CLASSES: Final = [
    device_class("a", f"device.driver == '{A}'"),
    device_class("b", f"device.driver == '{B}'"),
    device_class("shared", f"device.driver == '{A}' && device.allowMultipleAllocations"),
    device_class("dedicated", f"device.driver == '{A}' && !device.allowMultipleAllocations"),
]
CONFIGURED: Final = [
    device_class("a", f"device.driver == '{A}'", "of-a"),
    device_class("b", f"device.driver == '{B}'", "of-b"),
]


def claim(
    *requests: Raw,
    same: Sequence[str] = (),
    distinct: Sequence[str] = (),
    config: Sequence[str] = (),
) -> Raw:
    """A claim. Constraints and configurations: `attribute` or `text`, then the requests meant."""
    constraints = [_constraint("matchAttribute", one) for one in same]
    constraints += [_constraint("distinctAttribute", one) for one in distinct]
    devices: Raw = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = constraints
    if config:
        devices["config"] = [_config(one) for one in config]
    return {"spec": {"devices": devices}}


def _constraint(kind: str, text: str) -> Raw:
    name, *requests = text.split()
    return {kind: f"{A}/{name}", **({"requests": requests} if requests else {})}


def _config(text: str) -> Raw:
    name, *requests = text.split()
    return {"opaque": _opaque(name), **({"requests": requests} if requests else {})}


def wish(
    of: str = "a",
    count: int | str = 1,
    *,
    where: str = "",
    needs: str = "",
    admin: bool = False,
    tolerates: Sequence[Raw] = (),
) -> Raw:
    """What a request asks for. count: a number or `all`. needs: capacities as `name=amount`."""
    raw: Raw = {"deviceClassName": of}
    if count == "all":
        raw["allocationMode"] = "All"
    else:
        raw.update(allocationMode="ExactCount", count=count)
    if where:
        raw["selectors"] = [{"cel": {"expression": where}}]
    if needs:
        raw["capacity"] = {"requests": _amounts(needs)}
    if admin:
        raw["adminAccess"] = True
    if tolerates:
        raw["tolerations"] = list(tolerates)
    return raw


def ask(name: str = "r", *of_and_count: Any, **fields: Any) -> Raw:
    """A request for exactly this."""
    return {"name": name, "exactly": wish(*of_and_count, **fields)}


def first(name: str, *wishes: Raw) -> Raw:
    """A request with alternatives s0, s1 and so on."""
    return {
        "name": name,
        "firstAvailable": [{"name": f"s{number}", **one} for number, one in enumerate(wishes)],
    }


def dev(
    name: str,
    *,
    has: Mapping[str, Any] | None = None,
    cap: Mapping[str, Any] | str = "",
    uses: str = "",
    shared: bool = False,
    taints: Sequence[Raw] = (),
    on: str | Raw = "",
    ready: str = "",
    bound: bool = False,
) -> Raw:
    """A device.

    has: attributes, by their Python type; a version is a text that begins with `v`. uses: counters
    as `set.counter=amount`; with cap `as used`, its capacities are those. ready: the binding
    condition. on: its own place, see `place`.
    """
    raw: Raw = {"name": name}
    if has:
        raw["attributes"] = {key: _attribute(value) for key, value in has.items()}
    if uses:
        raw["consumesCounters"] = _consumed(uses)
    if cap:
        raw["capacity"] = _capacity(raw, cap)
    if shared:
        raw["allowMultipleAllocations"] = True
    if taints:
        raw["taints"] = list(taints)
    if ready:
        raw["bindingConditions"], raw["bindingFailureConditions"] = [ready], [f"no-{ready}"]
    if bound:
        raw["bindsToNode"] = True
    return {**raw, **(place(on) if on else {})}


def devs(count: int) -> list[Raw]:
    """Plain devices d0, d1 and so on."""
    return [dev(f"d{number}") for number in range(count)]


def _attribute(value: Any) -> Raw:
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, list):
        return {"strings": value}
    if isinstance(value, dict):
        return value
    return {"version": value[1:]} if value[:1] == "v" else {"string": value}


def _amounts(text: str) -> dict[str, str]:
    return dict(part.split("=") for part in text.split())


def _capacity(raw: Raw, cap: Mapping[str, Any] | str) -> Raw:
    if not isinstance(cap, str):
        return dict(cap)
    if cap == "as used":
        return {k: v for used in raw["consumesCounters"] for k, v in used["counters"].items()}
    return {name: {"value": amount} for name, amount in _amounts(cap).items()}


def _consumed(text: str) -> list[Raw]:
    return [{"counterSet": name, "counters": counters} for name, counters in _sets(text).items()]


def _sets(text: str) -> dict[str, Raw]:
    found: dict[str, Raw] = {}
    for key, amount in _amounts(text).items():
        set_name, counter = key.split(".")
        found.setdefault(set_name, {})[counter] = {"value": amount}
    return found


def steps(value: str, least: str = "2", step: str = "2", most: str = "4") -> Raw:
    """A capacity of which claims take a range in steps; the default is the least."""
    range_ = {"min": least, "step": step, "max": most}
    return {"value": value, "requestPolicy": {"default": least, "validRange": range_}}


def choices(value: str, *values: str) -> Raw:
    """A capacity of which claims take one of some values; the default is the first."""
    return {"value": value, "requestPolicy": {"default": values[0], "validValues": list(values)}}


def place(on: str | Raw) -> Raw:
    """A node selection: a node, `all`, `each` (by device), `KEY:VALUE` of a label, or as it is."""
    if not isinstance(on, str):
        return on
    if on == "all":
        return {"allNodes": True}
    if on == "each":
        return {"perDeviceNodeSelection": True}
    if ":" not in on:
        return {"nodeName": on}
    key, value = on.split(":")
    requirement = {"key": key, "operator": "In", "values": [value]}
    kind = "matchFields" if key == "metadata.name" else "matchExpressions"
    return {"nodeSelector": {"nodeSelectorTerms": [{kind: [requirement]}]}}


def part(
    *devices: Raw,
    pool: str = "p",
    of: str = A,
    on: str | Raw = "n1",
    count: int = 1,
    generation: int = 1,
    name: str = "",
    sets: str = "",
) -> Raw:
    """A slice. count: slices that the pool has. sets: shared counters as `set.counter=amount`."""
    spec: Raw = {
        "driver": of,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        **place(on),
    }
    if sets:
        spec["sharedCounters"] = [
            {"name": key, "counters": one} for key, one in _sets(sets).items()
        ]
    else:
        spec["devices"] = list(devices)
    return {
        "metadata": {"name": name or f"{pool}-{of}-{'counters' if sets else 'devices'}"},
        "spec": spec,
    }


def counted(sets: str, *devices: Raw, **fields: Any) -> list[Raw]:
    """A pool of a slice with devices and one with shared counters."""
    return [part(*devices, count=2, **fields), part(count=2, sets=sets, **fields)]


def held(*devices: str, of: str = A, share: bool = False, takes: str = "") -> list[Raw]:
    """Claims of others, one for each `pool/device`. share: a share of it, which takes so much."""
    return [
        {
            "metadata": {"namespace": "default", "name": f"held-{number}", "uid": f"h{number}"},
            "spec": {"devices": {}},
            "status": {"allocation": {"devices": {"results": [_result(one, of, share, takes)]}}},
        }
        for number, one in enumerate(devices)
    ]


def _result(text: str, of: str, share: bool, takes: str) -> Raw:
    pool, device = text.split("/")
    raw: Raw = {"request": "x", "driver": of, "pool": pool, "device": device}
    if share:
        raw["shareID"] = "00000000-0000-4000-8000-000000000000"
    if takes:
        raw["consumedCapacity"] = _amounts(takes)
    return raw


NO_SCHEDULE: Final = {"key": "k", "value": "v", "effect": "NoSchedule"}
NO_EXECUTE: Final = {"key": "k", "value": "w", "effect": "NoExecute"}
NO_EFFECT: Final = {"key": "k", "value": "v", "effect": "None"}
ANY_NO_SCHEDULE: Final = {"operator": "Exists", "key": "k", "effect": "NoSchedule"}
THIS_NO_EXECUTE: Final = {"operator": "Equal", "key": "k", "value": "w", "effect": "NoExecute"}


def at_least(amount: str, capacity: str = "memory") -> str:
    """A selector: this much of a capacity."""
    return f"device.capacity['{A}'].{capacity}.compareTo(quantity('{amount}')) >= 0"


def has(attribute: str, value: str = "") -> str:
    """A selector: an attribute that is true, or that is this text."""
    text = f"device.attributes['{A}'].{attribute}"
    return f"{text} == '{value}'" if value else text
