"""Which devices other claims hold. Source: dra-api.md C.2."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dragoon.allocator.model import DeviceId, Raw


@dataclass(frozen=True, slots=True)
class Usage:
    """Devices in use, each with the claim that holds it.

    exclusive: held as a whole. shared: at least one share is held. Results with admin access
    count in neither.
    """

    exclusive: Mapping[DeviceId, str] = field(default_factory=dict)
    shared: Mapping[DeviceId, str] = field(default_factory=dict)


def usage_of(claims: Iterable[Raw]) -> Usage:
    """What these raw claims hold; claims without an allocation hold nothing."""
    exclusive: dict[DeviceId, str] = {}
    shared: dict[DeviceId, str] = {}
    for claim in claims:
        allocation = (claim.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            if result.get("adminAccess"):
                continue
            device = DeviceId(result["driver"], result["pool"], result["device"])
            holders = shared if result.get("shareID") else exclusive
            holders.setdefault(device, _name(claim))
    return Usage(exclusive, shared)


def _name(claim: Raw) -> str:
    metadata = claim.get("metadata") or {}
    namespace, name = metadata.get("namespace"), metadata.get("name", "")
    return f"{namespace}/{name}" if namespace else str(name)
