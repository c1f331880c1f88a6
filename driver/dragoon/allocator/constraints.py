"""Constraints across the devices of a claim.

Source: `constraint.go` and the allocators in `structured` of k8s.io/dynamic-resource-allocation
0.37.2.
"""

from typing import Any, Protocol

from dragoon.allocator.model import Claim, Constraint, Facts, Request

_Value = tuple[str, Any]


def attribute_of(facts: Facts, name: str) -> _Value | None:
    """Type and value of an attribute by its fully qualified name, None without it.

    A name in the driver's own domain also finds what is published without a domain. A list has no
    type here: it is equal to nothing while the feature gate for lists is off.
    """
    domain, slash, identifier = name.partition("/")
    short = identifier if slash and domain == facts.driver else None
    found: _Value | None = None
    for published, kind, value in facts.attributes:
        if published == name:
            return _scalar(kind, value)
        if published == short:
            found = _scalar(kind, value)
    return found


def _scalar(kind: str, value: Any) -> _Value:
    return ("", None) if kind.endswith("s") else (kind, value)


class Tracker(Protocol):
    """One constraint during a search: knows the devices chosen so far."""

    constraint: Constraint

    def add(self, request: Request, facts: Facts) -> bool:
        """Takes a device in if the constraint still holds with it."""

    def remove(self, request: Request) -> None:
        """Takes back the last device that was added for this request."""


def trackers(claim: Claim) -> tuple[Tracker, ...]:
    """A tracker for each constraint of the claim."""
    return tuple(
        DistinctValues(one) if one.distinct else SameValue(one) for one in claim.constraints
    )


class SameValue:
    """matchAttribute: the first device decides the value, and the others must have it too."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self._value: _Value | None = None
        self._count = 0

    def add(self, request: Request, facts: Facts) -> bool:
        """Takes the device in if it has the value of those before it."""
        if not self.constraint.covers(request):
            return True
        value = attribute_of(facts, self.constraint.attribute)
        if value is None:
            return False
        if self._count == 0:
            self._value = value
        elif not value[0] or value != self._value:
            return False
        self._count += 1
        return True

    def remove(self, request: Request) -> None:
        """Takes back the last device that was added for this request."""
        if self.constraint.covers(request):
            self._count -= 1


class DistinctValues:
    """distinctAttribute: every device has the attribute, and no two have the same value."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self._values: list[_Value] = []

    def add(self, request: Request, facts: Facts) -> bool:
        """Takes the device in if its value is none of those before it."""
        if not self.constraint.covers(request):
            return True
        value = attribute_of(facts, self.constraint.attribute)
        if value is None or value in self._values or (self._values and not value[0]):
            return False
        self._values.append(value)
        return True

    def remove(self, request: Request) -> None:
        """Takes back the last device that was added for this request."""
        if self.constraint.covers(request):
            self._values.pop()
