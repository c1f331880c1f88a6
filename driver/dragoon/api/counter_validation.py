"""The rules of shared counters: the sets of a slice, and what a device consumes of them.

Sources: `validateCounterSet` and `validateDeviceCounterConsumption` of 1.37.2; what
consumption may refer to is the allocator's rule for a whole pool.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dragoon.api import limits
from dragoon.api.finding import Finding
from dragoon.api.quantities import quantity_of

_LABEL: Final = "a lower-case DNS label of at most 63 characters"


def check_counter_sets(sets: Any, path: str) -> Iterator[Finding]:
    """The `sharedCounters` of one slice."""
    if len(sets) > limits.COUNTER_SETS_PER_SLICE:
        allowed = f"at most {limits.COUNTER_SETS_PER_SLICE}"
        yield Finding(path, f"{len(sets)} counter sets", allowed)
    yield from _check_sets(sets, path, "name")


def check_consumption(consumed: Any, path: str) -> Iterator[Finding]:
    """The `consumesCounters` of one device."""
    if len(consumed) > limits.CONSUMED_SETS_PER_DEVICE:
        allowed = f"at most {limits.CONSUMED_SETS_PER_DEVICE}"
        yield Finding(path, f"{len(consumed)} counter sets", allowed)
    yield from _check_sets(consumed, path, "counterSet")


def check_references(slices: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """What makes the pool of these slices invalid: a set given twice, or one that is not there."""
    known: dict[str, Any] = {}
    for position, slice_ in enumerate(slices):
        for set_ in slice_["spec"].get("sharedCounters") or []:
            if set_["name"] in known:
                path = f"slices[{position}].spec.sharedCounters[{set_['name']}].name"
                yield Finding(path, set_["name"], "one counter set of this name in a pool")
            known[set_["name"]] = set_.get("counters") or {}
    for position, slice_ in enumerate(slices):
        for device in slice_["spec"].get("devices") or []:
            for consumed in device.get("consumesCounters") or []:
                path = f"slices[{position}].spec.devices[{device['name']}].consumesCounters"
                yield from _check_known(consumed, known, path)


def _check_known(
    consumed: Mapping[str, Any], known: Mapping[str, Any], path: str
) -> Iterator[Finding]:
    name = consumed["counterSet"]
    if name not in known:
        yield Finding(f"{path}.counterSet", name, "a counter set of this pool")
        return
    for counter in consumed.get("counters") or {}:
        if counter not in known[name]:
            yield Finding(f"{path}[{name}].counters", counter, f"a counter of the set {name}")


def _check_sets(sets: Any, path: str, key: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, set_ in enumerate(sets):
        place = f"{path}[{index}]"
        if not isinstance(set_, Mapping):
            yield Finding(place, set_, "an object")
            continue
        name = set_.get(key)
        if not isinstance(name, str) or not limits.is_dns_label(name):
            yield Finding(f"{place}.{key}", name, _LABEL)
        elif name in seen:
            yield Finding(f"{place}.{key}", name, "each counter set once")
        else:
            seen.add(name)
        yield from _check_counters(set_.get("counters") or {}, f"{place}.counters")


def _check_counters(counters: Any, path: str) -> Iterator[Finding]:
    if not 1 <= len(counters) <= limits.COUNTERS_PER_SET:
        allowed = f"1 to {limits.COUNTERS_PER_SET}"
        yield Finding(path, f"{len(counters)} counters", allowed)
    for name, counter in counters.items():
        if not limits.is_dns_label(name):
            yield Finding(path, name, _LABEL)
        amount = counter.get("value") if isinstance(counter, Mapping) else None
        if quantity_of(amount) is None:
            yield Finding(f"{path}[{name}].value", amount, "a quantity such as 1")
