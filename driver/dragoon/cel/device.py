"""The variable `device` of a selector, from a device of a raw ResourceSlice.

Source: k8s.io/dynamic-resource-allocation 0.37 `cel/compile.go`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoon import quantity, semver
from dragoon.cel.values import DomainMap, NameMap
from dragoon.errors import InvalidInputError

_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": int,
    "bool": bool,
    "string": str,
    "version": semver.parse,
}
_LISTS: Final = {f"{name}s": read for name, read in _SCALARS.items()}


@dataclass(frozen=True, slots=True, eq=False)
class DeviceView:
    """What an expression can read of a device. The maps are not to be changed."""

    variables: Mapping[str, Any]


def device_view(driver: str, device: Mapping[str, Any]) -> DeviceView:
    """The view of one entry of `spec.devices` in a slice of this driver.

    Raises InvalidInputError, naming the attribute or capacity, for a value that cannot be read.
    """
    attributes: DomainMap = DomainMap()
    for name, attribute in (device.get("attributes") or {}).items():
        domain, identifier = split_name(name, driver)
        value = attribute_value(name, attribute)
        attributes.setdefault(domain, NameMap())[identifier] = value
    capacity: DomainMap = DomainMap()
    for name, entry in (device.get("capacity") or {}).items():
        domain, identifier = split_name(name, driver)
        capacity.setdefault(domain, NameMap())[identifier] = _capacity_value(name, entry)
    return DeviceView(
        {
            "driver": driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
        }
    )


def split_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier of a qualified name; without a domain it is the driver's."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def attribute_value(name: str, attribute: Mapping[str, Any]) -> Any:
    """The runtime value of a DeviceAttribute. Raises InvalidInputError, naming it."""
    for kind, value in attribute.items():
        try:
            if kind in _SCALARS:
                return _SCALARS[kind](value)
            if kind in _LISTS:
                return tuple(map(_LISTS[kind], value))
        except (InvalidInputError, TypeError, ValueError) as error:
            raise InvalidInputError(f"attribute {name}: {error}") from error
    raise InvalidInputError(
        f"attribute {name}: found {', '.join(attribute) or 'nothing'}, allowed is one of "
        f"{', '.join((*_SCALARS, *_LISTS))}"
    )


def _capacity_value(name: str, entry: Mapping[str, Any]) -> quantity.Quantity:
    try:
        return quantity.parse(str(entry["value"]))
    except (InvalidInputError, KeyError) as error:
        raise InvalidInputError(f"capacity {name}: {error}") from error
