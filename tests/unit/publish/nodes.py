"""Cards and slices that tests of publishing start from."""

from collections.abc import Sequence
from typing import Any

from dragoon.gpu.model import Gpu, Inventory, PciAddress
from dragoon.gpu.opening import open_gpus
from dragoon.publish.device import Device
from dragoon.publish.devices import Devices, build
from dragoon.publish.slices import render

DRIVER = "gpu.dragoon.dev"
NODE = "node-a"
NODE_UID = "5d3f9a52-0000-0000-0000-000000000001"

Object = dict[str, Any]


def address(number: int) -> PciAddress:
    return PciAddress(0, 0x10 + number, 0)


def gpu(number: int, **changes: Any) -> Gpu:
    """The n-th GPU of a node, at bus 0x10 + n."""
    fields: dict[str, Any] = {
        "address": address(number),
        "index": number,
        "uuid": f"GPU-{number:08d}-0000-0000-0000-000000000000",
        "product": "NVIDIA H100 80GB HBM3",
        "memory_bytes": 81559 * 2**20,
    }
    return Gpu(**(fields | changes))


def inventory(*gpus: Gpu, **changes: Any) -> Inventory:
    return Inventory(gpus=gpus or (gpu(0), gpu(1)), **changes)


def machine(name: str) -> Inventory:
    """What the real adapter finds on a simulated machine."""
    gpus = open_gpus(name, beside_driver=True)
    try:
        return gpus.inventory()
    finally:
        gpus.close()


def devices(found: Inventory, **known: Any) -> dict[str, Device]:
    return {device.name: device for device in built(found, **known).devices}


def built(found: Inventory, **known: Any) -> Devices:
    return build(found, **known)


def published(found: Inventory) -> dict[str, Object]:
    """The raw devices in the slices of a node, by name."""
    slices = render(found, node=NODE, driver=DRIVER)
    return {device["name"]: device for slice_ in slices for device in slice_["spec"]["devices"]}


def attribute(device: Object, name: str) -> Any:
    """The value of an attribute, None where it is absent."""
    values: Sequence[Any] = list(device["attributes"].get(name, {}).values())
    return values[0] if values else None
