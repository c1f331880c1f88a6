"""What the API server checks and adds in a ResourceClaim. Pure.

Source: `pkg/apis/resource/validation` and the registry strategies of 1.37.2.
"""

from collections.abc import Iterator
from typing import Any

from dragoon.kube.port import Object

_CONSUMERS = 256
_RESULTS = 32
_CONDITIONS = 8


def default(_old: Object | None, new: Object, _now: str) -> None:
    """Fills in the defaults of requests, and drops the status of devices not allocated now."""
    for request in new.get("spec", {}).get("devices", {}).get("requests") or ():
        for exact in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if exact is None:
                continue
            exact.setdefault("allocationMode", "ExactCount")
            if exact["allocationMode"] == "ExactCount":
                exact.setdefault("count", 1)
    status = new.get("status") or {}
    before = ((_old or {}).get("status") or {}).get("devices") or ()
    stale = {_device_key(entry) for entry in before} - _allocated(status)
    if status.get("devices") and stale:
        status["devices"] = [e for e in status["devices"] if _device_key(e) not in stale]


def check(old: Object | None, new: Object) -> Iterator[str]:
    """Yields what is wrong with the status of the new claim, given the old one."""
    status = new.get("status") or {}
    before = (old or {}).get("status") or {}
    yield from _check_allocation(before.get("allocation"), status.get("allocation"))
    yield from _check_consumers(new, before, status)
    yield from _check_devices(status)


def _check_allocation(before: Any, now: Any) -> Iterator[str]:
    if before and now and before != now:
        yield "status.allocation: Invalid value: field cannot be modified once set"
    results = ((now or {}).get("devices") or {}).get("results") or ()
    if len(results) > _RESULTS:
        yield f"status.allocation.devices.results: Too many: must have at most {_RESULTS} items"
    for index, result in enumerate(results):
        for name in ("request", "driver", "pool", "device"):
            if not result.get(name):
                yield f"status.allocation.devices.results[{index}].{name}: Required value"


def _check_consumers(new: Object, before: Any, status: Any) -> Iterator[str]:
    consumers = status.get("reservedFor") or ()
    uids = [consumer.get("uid") for consumer in consumers]
    if consumers and not status.get("allocation"):
        yield "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    if len(consumers) > _CONSUMERS:
        yield f"status.reservedFor: Too many: must have at most {_CONSUMERS} items"
    if len(set(uids)) != len(uids):
        yield "status.reservedFor: Duplicate value"
    known = {consumer.get("uid") for consumer in before.get("reservedFor") or ()}
    if new["metadata"].get("deletionTimestamp") and set(uids) - known:
        yield "status.reservedFor: Forbidden: new entries may not be added while deleting"


def _check_devices(status: Any) -> Iterator[str]:
    allocated = _allocated(status)
    keys = [_device_key(entry) for entry in status.get("devices") or ()]
    if len(set(keys)) != len(keys):
        yield "status.devices: Duplicate value"
    for index, entry in enumerate(status.get("devices") or ()):
        if keys[index] not in allocated:
            yield f"status.devices[{index}]: Invalid value: must be an allocated device in the claim"
        if len(entry.get("conditions") or ()) > _CONDITIONS:
            yield f"status.devices[{index}].conditions: Too many: must have at most {_CONDITIONS}"


def _allocated(status: Any) -> set[tuple[Any, ...]]:
    devices = (status.get("allocation") or {}).get("devices") or {}
    return {_device_key(result) for result in devices.get("results") or ()}


def _device_key(entry: Any) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in ("driver", "pool", "device", "shareID"))
