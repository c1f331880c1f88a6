"""Whether two ResourceSlices say the same. Pure.

Compared is what readers see: owners and the spec, without the generation. Quantities are compared
by value, absent and empty are one, and `timeAdded` of a taint counts only where we set it: the
server fills it in, and rounds it to seconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from dragoon.api.quantities import quantity_of

Object = Mapping[str, Any]
Content = Any
"""What a slice says, in a form that can be compared with `==`."""

_ROUNDING: Final = timedelta(seconds=1)
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller")

GATES: Final = {
    "taints": "DRADeviceTaints",
    "sharedCounters": "DRAPartitionableDevices",
    "consumesCounters": "DRAPartitionableDevices",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "requestPolicy": "DRAConsumableCapacity",
}
"""The feature gate without which the server drops a field."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that the server stored otherwise than it was sent."""

    path: str
    dropped: bool

    def __str__(self) -> str:
        if not self.dropped:
            return f"{self.path} was changed by the API server or its admission"
        gate = GATES.get(self.path.rpartition(".")[2])
        because = f": its feature gate {gate} is probably off" if gate else ""
        return f"{self.path} was dropped by the API server{because}"


def content(slice_: Object) -> Content:
    """What a slice says."""
    owners = slice_["metadata"].get("ownerReferences") or []
    spec = dict(slice_["spec"])
    spec["pool"] = {k: v for k, v in (spec.get("pool") or {}).items() if k != "generation"}
    spec["devices"] = [_device(device) for device in spec.get("devices") or []]
    spec["sharedCounters"] = [_counters(one) for one in spec.get("sharedCounters") or []]
    return {
        "owners": [{field: owner.get(field) for field in _OWNER_FIELDS} for owner in owners],
        "spec": _pruned(spec),
    }


def times_agree(wanted: Object, observed: Object) -> bool:
    """Whether every taint's timeAdded that wanted sets stands in observed, up to rounding."""
    there = dict(taint_times((observed,)))
    return all(_same_time(time, there.get(key)) for key, time in taint_times((wanted,)))


TaintKey = tuple[str, str, str, str]
"""Device, key, value and effect."""


def taint_times(slices: Sequence[Object]) -> Iterator[tuple[TaintKey, str]]:
    """When each taint was added, where that is said."""
    for slice_ in slices:
        for device in slice_["spec"].get("devices") or []:
            for taint in device.get("taints") or []:
                if taint.get("timeAdded"):
                    key = device["name"], taint["key"], taint.get("value", ""), taint["effect"]
                    yield key, taint["timeAdded"]


def differences(sent: Content, stored: Content) -> tuple[Difference, ...]:
    """Where two contents differ, by path."""
    return tuple(_differences("", sent, stored))


def _differences(path: str, sent: Any, stored: Any) -> Iterator[Difference]:
    if sent == stored:
        return
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key in sorted({*sent, *stored}):
            place = f"{path}.{key}" if path else key
            yield from _differences(place, sent.get(key), stored.get(key))
    elif _are_named(sent) and _are_named(stored):
        there = {device["name"]: device for device in stored}
        same_order = [d["name"] for d in sent] == [d["name"] for d in stored]
        if not same_order:
            yield Difference(path, dropped=False)
        for device in sent:
            place = f"{path}[{device['name']}]"
            yield from _differences(place, device, there.get(device["name"]))
    else:
        yield Difference(path, dropped=stored is None)


def _are_named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(d, dict) and "name" in d for d in value)


def _device(device: Object) -> dict[str, Any]:
    said = dict(device)
    if said.get("capacity"):
        said["capacity"] = {name: _by_value(value) for name, value in said["capacity"].items()}
    if said.get("consumesCounters"):
        said["consumesCounters"] = [_counters(one) for one in said["consumesCounters"]]
    if said.get("taints"):
        said["taints"] = [_taint(taint) for taint in said["taints"]]
    return said


def _counters(owner: Object) -> dict[str, Any]:
    """A counter set, or what a device takes of one."""
    counters = owner.get("counters") or {}
    return {**owner, "counters": {name: _by_value(one) for name, one in counters.items()}}


def _by_value(value: Any) -> Any:
    """With quantities in place of the texts that mean one."""
    if isinstance(value, Mapping):
        return {key: _by_value(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_by_value(entry) for entry in value]
    found = quantity_of(value)
    return value if found is None else found


def _taint(taint: Object) -> dict[str, Any]:
    return {k: v for k, v in taint.items() if k != "timeAdded" and (k, v) != ("value", "")}


def _pruned(value: Any) -> Any:
    """Without what is absent or empty. `false`, 0 and the empty text are values."""
    if isinstance(value, Mapping):
        kept = {key: _pruned(entry) for key, entry in value.items()}
        return {key: entry for key, entry in kept.items() if entry not in (None, {}, [])}
    if isinstance(value, list):
        return [_pruned(entry) for entry in value]
    return value


def _same_time(wanted: str, observed: str | None) -> bool:
    if observed is None:
        return False
    try:
        return abs(datetime.fromisoformat(wanted) - datetime.fromisoformat(observed)) <= _ROUNDING
    except (ValueError, TypeError):
        return wanted == observed
