"""Views of a ResourceClaim: what it was given, not what it asked for (that is the allocator's).

Source of the shape: resource.k8s.io/v1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """Which claim: the kubelet and the journal know it by these three."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.uid})"


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """One result of an allocation. `request` may be `name/subrequest`.

    consumed is what a share takes of its device: capacity and quantity as written, by name.
    """

    request: str
    driver: str
    pool: str
    device: str
    share_id: str | None = None
    admin_access: bool = False
    consumed: tuple[tuple[str, str], ...] = ()

    @property
    def base_request(self) -> str:
        """The request's name as containers use it: without the subrequest."""
        return self.request.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Allocation:
    """status.allocation, as far as a node plugin reads it."""

    devices: tuple[AllocatedDevice, ...]
    config: tuple[Mapping[str, Any], ...] = ()


def claim_ref(claim: Mapping[str, Any]) -> ClaimRef:
    """The identity of a raw claim."""
    meta = claim["metadata"]
    return ClaimRef(meta.get("namespace", ""), meta["name"], meta["uid"])


def allocation(claim: Mapping[str, Any]) -> Allocation | None:
    """The allocation of a raw claim, None while it has none."""
    found = claim.get("status", {}).get("allocation")
    if not found:
        return None
    devices = found.get("devices") or {}
    results = devices.get("results") or []
    return Allocation(
        devices=tuple(_device(result) for result in results),
        config=tuple(devices.get("config") or ()),
    )


def reserved_pods(claim: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """(name, uid) of every pod in status.reservedFor."""
    consumers = claim.get("status", {}).get("reservedFor") or []
    return tuple((c["name"], c["uid"]) for c in consumers if c.get("resource") == "pods")


def owner_pod(claim: Mapping[str, Any]) -> tuple[str, str] | None:
    """(name, uid) of the pod that a claim was made for, and with which it goes.

    None for a claim that somebody made by hand: any number of pods may use that.
    """
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == "Pod" and owner["apiVersion"] == "v1":
            return owner["name"], owner["uid"]
    return None


def _device(result: Mapping[str, Any]) -> AllocatedDevice:
    return AllocatedDevice(
        request=result["request"],
        driver=result["driver"],
        pool=result["pool"],
        device=result["device"],
        share_id=result.get("shareID"),
        admin_access=bool(result.get("adminAccess")),
        consumed=tuple(sorted((result.get("consumedCapacity") or {}).items())),
    )
