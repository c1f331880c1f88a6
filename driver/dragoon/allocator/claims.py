"""Raw ResourceClaims, DeviceClasses and Nodes to records; what cannot be allocated is refused."""

from typing import Any, Final

from dragoon import quantity
from dragoon.allocator.fields import items, refuse, required
from dragoon.allocator.model import (
    Claim,
    Constraint,
    DeviceClass,
    Node,
    Raw,
    Request,
    Toleration,
    Wanted,
)
from dragoon.errors import InvalidInputError, UnsupportedError

_MAX_ALTERNATIVES: Final = 8
"""Entries of firstAvailable (resource.k8s.io/v1 FirstAvailableDeviceRequestMaxSize)."""
_NOT_IN_ALTERNATIVES: Final = ("adminAccess",)


def claim_view(raw: Raw) -> Claim:
    """The record of a ResourceClaim.

    Raises InvalidInputError for what the API server would not store, UnsupportedError for derived
    attributes and for modes that are not known; both name the claim and the field.
    """
    metadata = required(raw, "metadata", "ResourceClaim")
    owner = f"ResourceClaim {metadata.get('name') or '(without a name)'}"
    devices = (required(raw, "spec", owner).get("devices")) or {}
    return Claim(
        namespace=metadata.get("namespace") or "",
        name=metadata.get("name") or "",
        uid=metadata.get("uid") or "",
        requests=tuple(_wanted(request, owner) for request in items(devices, "requests")),
        constraints=tuple(_constraint(entry, owner) for entry in items(devices, "constraints")),
        config=items(devices, "config"),
    )


def class_view(raw: Raw) -> DeviceClass:
    """The record of a DeviceClass. Raises InvalidInputError naming class and field."""
    name = required(raw, "metadata.name", "DeviceClass")
    spec = raw.get("spec") or {}
    return DeviceClass(name, _selectors(spec, f"DeviceClass {name}"), items(spec, "config"))


def node_view(raw: Raw) -> Node:
    """The record of a Node. Raises InvalidInputError if it has no name."""
    return Node(required(raw, "metadata.name", "Node"), raw["metadata"].get("labels") or {})


def _wanted(raw: Raw, claim: str) -> Wanted:
    name = required(raw, "name", f"{claim}: spec.devices.requests[]")
    owner = f"{claim}: request {name}"
    exactly, alternatives = raw.get("exactly"), items(raw, "firstAvailable")
    if exactly and alternatives:
        raise InvalidInputError(f"{owner}: both exactly and firstAvailable are set, allowed is one")
    if exactly:
        return Wanted(name, (_request(exactly, name, name, f"{owner}: exactly"),))
    if not alternatives:
        raise InvalidInputError(
            f"{owner}: neither exactly nor firstAvailable is set",
            hint="in resource.k8s.io/v1 a request's fields stand under exactly",
        )
    if len(alternatives) > _MAX_ALTERNATIVES:
        raise InvalidInputError(
            f"{owner}: firstAvailable has {len(alternatives)} entries, "
            f"allowed are {_MAX_ALTERNATIVES}"
        )
    return Wanted(
        name, tuple(_alternative(one, name, owner) for one in alternatives), prioritized=True
    )


def _alternative(raw: Raw, base: str, owner: str) -> Request:
    sub = required(raw, "name", f"{owner}: firstAvailable[]")
    for field in _NOT_IN_ALTERNATIVES:
        if raw.get(field):
            raise InvalidInputError(f"{owner}/{sub}: {field} is not allowed in firstAvailable")
    return _request(raw, base, f"{base}/{sub}", f"{owner}/{sub}")


def _request(raw: Raw, base: str, name: str, owner: str) -> Request:
    refuse(raw, "derivedAttributes", owner)
    tolerations = items(raw, "tolerations")
    everything = _is_everything(raw, owner)
    return Request(
        base=base,
        name=name,
        class_name=required(raw, "deviceClassName", owner),
        count=0 if everything else _count(raw, owner),
        everything=everything,
        admin=bool(raw.get("adminAccess")),
        selectors=_selectors(raw, owner),
        capacity=_capacity(raw, owner),
        tolerations=tuple(map(_toleration, tolerations)),
        raw_tolerations=tolerations,
    )


def _is_everything(raw: Raw, owner: str) -> bool:
    mode = raw.get("allocationMode") or "ExactCount"
    if mode not in {"ExactCount", "All"}:
        raise UnsupportedError(f"{owner}: allocationMode {mode} is not known")
    if mode == "All" and raw.get("count"):
        raise InvalidInputError(f"{owner}: count: not allowed with allocationMode All")
    return bool(mode == "All")


def _count(raw: Raw, owner: str) -> int:
    count = raw.get("count") or 1  # The API server makes 1 of 0, too.
    if not isinstance(count, int) or count < 1:
        raise InvalidInputError(f"{owner}: count: found {count!r}, allowed is a number from 1")
    return count


def _capacity(raw: Raw, owner: str) -> tuple[tuple[str, str], ...]:
    """The amounts asked for, by the key as written: only the very key of the device matches."""
    requests = (raw.get("capacity") or {}).get("requests") or {}
    for name, amount in requests.items():
        try:
            quantity.nanos(quantity.parse(str(amount)))
        except InvalidInputError as error:
            raise InvalidInputError(
                f"{owner}: capacity.requests.{name}: {error.message}"
            ) from error
    return tuple((name, str(amount)) for name, amount in requests.items())


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
    same: Any = raw.get("matchAttribute")
    if same:
        return Constraint(same, items(raw, "requests"))
    distinct: Any = raw.get("distinctAttribute")
    if distinct:
        return Constraint(distinct, items(raw, "requests"), distinct=True)
    raise UnsupportedError(f"{owner}: constraints: neither matchAttribute nor distinctAttribute")


def _toleration(raw: Raw) -> Toleration:
    return Toleration(
        key=raw.get("key") or "",
        operator=raw.get("operator") or "",
        value=raw.get("value") or "",
        effect=raw.get("effect") or "",
    )
