"""Constraints across the devices of a claim. Source: dra-api.md C.5."""

from typing import Any

from dragoon.allocator.model import Constraint, Device


def attribute_of(device: Device, name: str) -> tuple[str, Any] | None:
    """Type and value of a device's attribute by its fully qualified name, None without it.

    A name in the driver's own domain also finds what is published without a domain.
    """
    found = device.attributes.get(name)
    if found is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == device.id.driver:
            found = device.attributes.get(identifier)
    # A list has no type here: it matches nothing while the feature gate for lists is off.
    return found


class SameValue:
    """One matchAttribute constraint during a search: the value of the devices chosen so far."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._value: tuple[str, Any] | None = None
        self._count = 0

    def add(self, request: str, device: Device) -> bool:
        """Takes the device in if it has the value of those before it."""
        if not self._constraint.covers(request):
            return True
        value = attribute_of(device, self._constraint.attribute)
        if value is None:
            return False
        if self._count == 0:
            self._value = value
        elif not value[0] or value != self._value:
            return False
        self._count += 1
        return True

    def remove(self, request: str) -> None:
        """Takes back the last device that was added for this request."""
        if self._constraint.covers(request):
            self._count -= 1
