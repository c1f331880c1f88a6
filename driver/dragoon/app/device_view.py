"""A published device as people read it: words and sizes out of the raw device of a slice."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from dragoon import quantity
from dragoon.api import names
from dragoon.diagnose.manifests import listed, mapping, text
from dragoon.publish import attributes
from dragoon.quantity import Quantity

_GIB: Final = 2**30

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeviceView:
    """One device. Texts are empty, and memory is None, where the device does not say it."""

    name: str
    pool: str
    form: str
    uuid: str
    address: str
    driver_version: str
    product: str
    memory: Quantity | None
    nvlink_domain: str
    numa_node: str
    pcie_root: str
    taints: str

    @classmethod
    def of(cls, device: Object, pool: str) -> Self:
        """Reads a raw device of that pool."""
        size = mapping(mapping(device.get("capacity")).get(attributes.MEMORY))
        return cls(
            name=text(device.get("name")),
            pool=pool,
            form=_form(device),
            uuid=_text(device, attributes.UUID),
            address=_text(device, names.PCI_BUS_ID),
            driver_version=_text(device, attributes.DRIVER_VERSION),
            product=_text(device, attributes.PRODUCT),
            memory=quantity.parse(str(size["value"])) if "value" in size else None,
            nvlink_domain=_text(device, attributes.NVLINK_DOMAIN),
            numa_node=_text(device, names.NUMA_NODE),
            pcie_root=_text(device, names.PCIE_ROOT),
            taints=", ".join(_taint(taint) for taint in map(mapping, listed(device.get("taints")))),
        )

    @property
    def memory_text(self) -> str:
        """The size in GiB; `unknown` where the driver does not tell it."""
        if self.memory is None:
            return "unknown"
        return f"{self.memory.as_approximate_float() / _GIB:.1f} GiB"


def views(slices: Iterable[Object]) -> tuple[DeviceView, ...]:
    """Every device of the slices."""
    return tuple(
        DeviceView.of(device, text(mapping(spec.get("pool")).get("name")))
        for spec in (mapping(item.get("spec")) for item in slices)
        for device in map(mapping, listed(spec.get("devices")))
    )


def _form(device: Object) -> str:
    """The type, and the profile of a MIG device: `mig 1g.10gb`."""
    return f"{_text(device, attributes.TYPE)} {_text(device, attributes.PROFILE)}".strip()


def _text(device: Object, attribute: str) -> str:
    typed = mapping(mapping(device.get("attributes")).get(attribute))
    return "".join(str(value) for value in typed.values() if value is not None)


def _taint(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"
