"""The rules of a ResourceSlice, and those of a pool that the API server leaves to its readers.

Used before publishing, and by the embedded API store so that it refuses what a real server
refuses. Source: `ValidateResourceSlice` in `pkg/apis/resource/validation` of 1.37.2;
for pools `k8s.io/dynamic-resource-allocation` of 0.37.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dragoon.api import limits
from dragoon.api.counter_validation import check_counter_sets, check_references
from dragoon.api.device_validation import check_device
from dragoon.api.finding import Finding

_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def check_slice(slice_: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Everything for which an API server would refuse to create this ResourceSlice."""
    spec = slice_.get("spec")
    if not isinstance(spec, Mapping):
        return (Finding("spec", spec, "an object"),)
    return (
        *_check_metadata(slice_.get("metadata") or {}),
        *_check_identity(spec),
        *_check_place(spec),
        *_check_content(spec),
    )


def check_pool(slices: Sequence[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """What makes a pool invalid for the allocator although each slice is valid.

    Device names and counter sets are unique in a pool, and what devices consume is there.
    """
    return (*_check_names(slices), *check_references(slices))


def _check_names(slices: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    seen: set[str] = set()
    for position, slice_ in enumerate(slices):
        for device in slice_["spec"].get("devices") or []:
            if device["name"] in seen:
                path = f"slices[{position}].spec.devices[{device['name']}].name"
                yield Finding(path, device["name"], "one device of this name in a pool")
            seen.add(device["name"])


def _check_metadata(metadata: Mapping[str, Any]) -> Iterator[Finding]:
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if name:
        if not limits.is_subdomain(name):
            yield Finding("metadata.name", name, "a DNS subdomain")
    elif not prefix or not limits.is_generate_name(prefix):
        yield Finding("metadata.generateName", prefix, "the beginning of a DNS subdomain")


def _check_identity(spec: Mapping[str, Any]) -> Iterator[Finding]:
    driver = spec.get("driver")
    if not isinstance(driver, str) or not limits.is_driver_name(driver):
        yield Finding("spec.driver", driver, "a DNS subdomain of at most 63 characters")
    pool = spec.get("pool")
    if not isinstance(pool, Mapping):
        yield Finding("spec.pool", pool, "an object")
        return
    name = pool.get("name")
    if not isinstance(name, str) or not limits.is_pool_name(name):
        yield Finding(
            "spec.pool.name", name, "DNS subdomains with `/` between them, 253 characters in all"
        )
    yield from _check_number(pool, "generation", default=0, lowest=0)
    yield from _check_number(pool, "resourceSliceCount", default=0, lowest=1)


def _check_number(
    pool: Mapping[str, Any], field: str, *, default: int, lowest: int
) -> Iterator[Finding]:
    found = pool.get(field)
    value = default if found is None else found
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not lowest <= value <= limits.INT64_MAX:
        yield Finding(f"spec.pool.{field}", value, f"a 64-bit integer of at least {lowest}")


def _check_place(spec: Mapping[str, Any]) -> Iterator[Finding]:
    given = [field for field in _PLACES if spec.get(field) is not None]
    if len(given) != 1:
        yield Finding("spec", given, f"exactly one of {', '.join(_PLACES)}")
    for field in given:
        if not spec[field]:
            yield Finding(f"spec.{field}", spec[field], "not set, or not empty and not false")
    node = spec.get("nodeName")
    if node and not limits.is_subdomain(node):
        yield Finding("spec.nodeName", node, "a DNS subdomain")
    selector = spec.get("nodeSelector")
    if selector and len(selector.get("nodeSelectorTerms") or []) != 1:
        yield Finding("spec.nodeSelector", selector, "exactly one term")


def _check_content(spec: Mapping[str, Any]) -> Iterator[Finding]:
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:
        yield Finding("spec", ["devices", "sharedCounters"], "one of them in a slice (since 1.35)")
    yield from check_counter_sets(counters or [], "spec.sharedCounters")
    if not devices:
        return
    detailed = any(
        isinstance(device, Mapping) and (device.get("taints") or device.get("consumesCounters"))
        for device in devices
    )
    limit = limits.DEVICES_PER_DETAILED_SLICE if detailed else limits.DEVICES_PER_SLICE
    if len(devices) > limit:
        yield Finding("spec.devices", f"{len(devices)} devices", f"at most {limit}")
    names: set[str] = set()
    for index, device in enumerate(devices):
        yield from check_device(device, f"spec.devices[{index}]")
        name = device.get("name") if isinstance(device, Mapping) else None
        if isinstance(name, str):
            if name in names:
                yield Finding(f"spec.devices[{index}].name", name, "one device of this name")
            names.add(name)
