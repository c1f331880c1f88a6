"""Raw ResourceClaims and DeviceClasses to views; what the allocator cannot do is refused here."""

from typing import Any, Final

from dragoon.allocator.fields import items, refuse, required
from dragoon.allocator.model import (
    Claim,
    Constraint,
    DeviceClass,
    Node,
    Raw,
    Request,
    Toleration,
)
from dragoon.errors import InvalidInputError, UnsupportedError

_REFUSED_IN_REQUEST: Final = ("adminAccess", "capacity", "derivedAttributes")


def claim_view(raw: Raw) -> Claim:
    """The view of a ResourceClaim.

    Raises InvalidInputError for what the API server would not store, UnsupportedError for
    firstAvailable, allocationMode All, admin access, capacity requests, derived attributes and
    distinctAttribute; both name the claim and the field.
    """
    metadata = required(raw, "metadata", "ResourceClaim")
    owner = f"ResourceClaim {metadata.get('name') or '(without a name)'}"
    devices = (required(raw, "spec", owner).get("devices")) or {}
    return Claim(
        namespace=metadata.get("namespace") or "",
        name=metadata.get("name") or "",
        uid=metadata.get("uid") or "",
        requests=tuple(_request(request, owner) for request in items(devices, "requests")),
        constraints=tuple(_constraint(entry, owner) for entry in items(devices, "constraints")),
        config=items(devices, "config"),
    )


def class_view(raw: Raw) -> DeviceClass:
    """The view of a DeviceClass. Raises InvalidInputError naming class and field."""
    name = required(raw, "metadata.name", "DeviceClass")
    spec = raw.get("spec") or {}
    return DeviceClass(name, _selectors(spec, f"DeviceClass {name}"), items(spec, "config"))


def node_view(raw: Raw) -> Node:
    """The view of a Node. Raises InvalidInputError if it has no name."""
    return Node(required(raw, "metadata.name", "Node"), raw["metadata"].get("labels") or {})


def _request(raw: Raw, claim: str) -> Request:
    name = required(raw, "name", f"{claim}: spec.devices.requests[]")
    owner = f"{claim}: request {name}"
    refuse(raw, "firstAvailable", owner)
    exactly = raw.get("exactly")
    if not exactly:
        raise InvalidInputError(
            f"{owner}: neither exactly nor firstAvailable is set",
            hint="in resource.k8s.io/v1 a request's fields stand under exactly",
        )
    for field in _REFUSED_IN_REQUEST:
        refuse(exactly, field, owner)
    tolerations = items(exactly, "tolerations")
    return Request(
        name=name,
        class_name=required(exactly, "deviceClassName", f"{owner}: exactly"),
        count=_count(exactly, owner),
        selectors=_selectors(exactly, owner),
        tolerations=tuple(map(_toleration, tolerations)),
        raw_tolerations=tolerations,
    )


def _count(exactly: Raw, owner: str) -> int:
    mode = exactly.get("allocationMode") or "ExactCount"
    if mode == "All":
        raise UnsupportedError(f"{owner}: Dragoon does not allocate by allocationMode All")
    if mode != "ExactCount":
        raise UnsupportedError(f"{owner}: allocationMode {mode} is not known")
    count = exactly.get("count")
    if count is None:
        return 1
    if not isinstance(count, int) or count < 1:
        raise InvalidInputError(f"{owner}: count: found {count!r}, allowed is a number from 1")
    return count


def _selectors(raw: Raw, owner: str) -> tuple[str, ...]:
    """The CEL texts of selectors."""
    found: list[str] = []
    for position, selector in enumerate(items(raw, "selectors")):
        expression = (selector.get("cel") or {}).get("expression")
        if not expression:
            raise UnsupportedError(f"{owner}: selectors[{position}] has no cel.expression")
        found.append(expression)
    return tuple(found)


def _constraint(raw: Raw, owner: str) -> Constraint:
    attribute: Any = raw.get("matchAttribute")
    if attribute:
        return Constraint(attribute, items(raw, "requests"))
    refuse(raw, "distinctAttribute", f"{owner}: constraints")
    raise UnsupportedError(f"{owner}: constraints: neither matchAttribute nor distinctAttribute")


def _toleration(raw: Raw) -> Toleration:
    return Toleration(
        key=raw.get("key") or "",
        operator=raw.get("operator") or "",
        value=raw.get("value") or "",
        effect=raw.get("effect") or "",
    )
