"""Raw Kubernetes objects for allocator tests, as short as they can be."""

from typing import Any

DRIVER = "gpu.dragoon.dev"
CLASS = "gpu.dragoon.dev"
Raw = dict[str, Any]


def device(name: str, **fields: Any) -> Raw:
    """A device; keywords that are no fields of a device become string or int attributes."""
    known = {
        "taints",
        "capacity",
        "consumesCounters",
        "allowMultipleAllocations",
        "nodeName",
        "nodeSelector",
        "allNodes",
        "bindsToNode",
        "bindingConditions",
        "bindingFailureConditions",
        "attributes",
    }
    raw: Raw = {"name": name, "attributes": {}}
    for key, value in fields.items():
        if key in known:
            raw[key] = value
        else:
            raw["attributes"][key] = {"int" if isinstance(value, int) else "string": value}
    return raw


def slice_of(
    *devices: Raw,
    node: str = "n",
    pool: str | None = None,
    name: str = "s0",
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
    **spec: Any,
) -> Raw:
    """A slice of a node's pool `<node>/gpu`."""
    selection = (
        {}
        if spec.keys() & {"allNodes", "nodeSelector", "perDeviceNodeSelection"}
        else {"nodeName": node}
    )
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {
                "name": pool or f"{node}/gpu",
                "generation": generation,
                "resourceSliceCount": count,
            },
            "devices": list(devices),
            **selection,
            **spec,
        },
    }


def request(
    name: str = "g", count: int = 1, *selectors: str, class_name: str = CLASS, **fields: Any
) -> Raw:
    exactly: Raw = {"deviceClassName": class_name, "count": count, **fields}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return {"name": name, "exactly": exactly}


def claim(
    *requests: Raw,
    name: str = "c",
    same: str | list[Raw] | None = None,
    config: list[Raw] | None = None,
) -> Raw:
    """A claim; same is an attribute for one constraint over all requests, or the constraints."""
    devices: Raw = {"requests": list(requests)}
    if same is not None:
        devices["constraints"] = [{"matchAttribute": same}] if isinstance(same, str) else same
    if config is not None:
        devices["config"] = config
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        "spec": {"devices": devices},
    }


def holding(*devices: str, name: str = "other", pool: str = "n/gpu", **result: Any) -> Raw:
    """A claim that has these devices."""
    results = [
        {"request": "x", "driver": DRIVER, "pool": pool, "device": one, **result} for one in devices
    ]
    return {
        **claim(request(), name=name),
        "status": {"allocation": {"devices": {"results": results}}},
    }


def class_of(*selectors: str, name: str = CLASS, config: list[Raw] | None = None) -> Raw:
    spec: Raw = {"selectors": [{"cel": {"expression": text}} for text in selectors]}
    if config is not None:
        spec["config"] = config
    return {"metadata": {"name": name}, "spec": spec}


def node(name: str = "n", **labels: str) -> Raw:
    return {"metadata": {"name": name, "labels": labels}}


GPU_CLASS = class_of(f"device.driver == '{DRIVER}'")


def opaque(driver: str, **parameters: Any) -> Raw:
    return {"opaque": {"driver": driver, "parameters": parameters}}


PLACEMENTS = {
    "1g": (1, 1, range(7)),
    "2g": (2, 2, (0, 2, 4)),
    "3g": (3, 4, (0, 4)),
    "4g": (4, 4, (0,)),
    "7g": (7, 8, (0,)),
}
"""Of an A100 or H100: compute parts, memory parts and where each profile can begin (C19)."""


def uses(counter_set: str, **amounts: str | int) -> list[Raw]:
    counters = {name.replace("_", "-"): {"value": str(n)} for name, n in amounts.items()}
    return [{"counterSet": counter_set, "counters": counters}]


def counters(*sets: tuple[str, dict[str, str]], count: int = 2, name: str = "z") -> Raw:
    """The slice of the pool with the counter sets."""
    raw = slice_of(name=name, count=count)
    del raw["spec"]["devices"]
    raw["spec"]["sharedCounters"] = [
        {"name": one, "counters": {key: {"value": value} for key, value in amounts.items()}}
        for one, amounts in sets
    ]
    return raw
