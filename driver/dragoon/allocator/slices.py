"""Raw ResourceSlices to views."""

from typing import Any, Final

from dragoon.allocator.fields import items, required
from dragoon.allocator.model import Device, DeviceId, NodeSelection, PoolId, Raw, Slice, Taint
from dragoon.cel import device_view
from dragoon.errors import InvalidInputError

_SCALARS: Final = ("string", "int", "bool", "version")
_CONDITIONS: Final = ("bindingConditions", "bindingFailureConditions")
_UNSUPPORTED: Final = ("consumesCounters", "allowMultipleAllocations")


def slice_view(raw: Raw) -> Slice:
    """The view of a ResourceSlice.

    Raises InvalidInputError, naming slice and field, for what the API server would not store.
    """
    name = required(raw, "metadata.name", "ResourceSlice")
    owner = f"ResourceSlice {name}"
    spec = required(raw, "spec", owner)
    driver, pool = required(spec, "driver", owner), required(spec, "pool", owner)
    pool_id = PoolId(driver, required(pool, "name", owner))
    try:
        devices = tuple(_device(pool_id, device, owner) for device in items(spec, "devices"))
    except InvalidInputError as error:
        raise InvalidInputError(f"{owner}: {error}") from error
    return Slice(
        name=name,
        pool=pool_id,
        generation=int(pool.get("generation") or 0),
        count=int(pool.get("resourceSliceCount") or 0),
        nodes=None if spec.get("perDeviceNodeSelection") else _node_selection(spec),
        devices=devices,
        counter_sets=tuple(
            (counter_set["name"], tuple(counter_set.get("counters") or ()))
            for counter_set in items(spec, "sharedCounters")
        ),
    )


def _device(pool: PoolId, raw: Raw, owner: str) -> Device:
    consumed = items(raw, "consumesCounters")
    return Device(
        id=DeviceId(pool.driver, pool.pool, required(raw, "name", f"{owner}: device")),
        view=device_view(pool.driver, raw),
        attributes={
            name: _typed(attribute) for name, attribute in (raw.get("attributes") or {}).items()
        },
        taints=tuple(
            Taint(taint["key"], taint.get("value") or "", taint["effect"])
            for taint in items(raw, "taints")
        ),
        counters=tuple(
            (consumption["counterSet"], tuple(consumption.get("counters") or ()))
            for consumption in consumed
        ),
        unsupported=_unsupported(raw),
        nodes=_node_selection(raw),
        binds_to_node=bool(raw.get("bindsToNode")),
        conditions={name: items(raw, name) for name in _CONDITIONS if raw.get(name)},
        has_compatibility_groups=any(
            consumption.get("compatibilityGroups") for consumption in consumed
        ),
    )


def _unsupported(raw: Raw) -> str:
    """The field that makes a device one that this allocator does not hand out."""
    return next((name for name in _UNSUPPORTED if raw.get(name)), "")


def _typed(attribute: Raw) -> tuple[str, Any]:
    """Type and value of an attribute; lists match nothing while their feature gate is off."""
    for kind in _SCALARS:
        if attribute.get(kind) is not None:
            return kind, attribute[kind]
    return "", None


def _node_selection(raw: Raw) -> NodeSelection:
    return NodeSelection(
        node_name=raw.get("nodeName") or "",
        all_nodes=bool(raw.get("allNodes")),
        selector=raw.get("nodeSelector"),
    )
