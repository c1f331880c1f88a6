"""What raw claims and pods say. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from dragoon.api import gang
from dragoon.kube.port import Object


class Device(NamedTuple):
    """A device that can be held by one claim only."""

    driver: str
    pool: str
    name: str


class Key(NamedTuple):
    """An object of one kind."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, body: Object) -> "Key":
        meta = body["metadata"]
        return cls(meta.get("namespace") or "", meta["name"], meta["uid"])


def devices(claim: Object) -> Iterator[Device]:
    """The devices of an allocation."""
    for one in ((allocated(claim) or {}).get("devices") or {}).get("results") or ():
        yield Device(one["driver"], one["pool"], one["device"])


def allocated(claim: Object) -> Object | None:
    """The allocation of a claim, None without one."""
    found: Object | None = (claim.get("status") or {}).get("allocation")
    return found


def claim_names(pod: Object) -> list[str]:
    """The names of a pod's claims, as far as they were made."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {one["name"]: one.get("resourceClaimName") for one in statuses}
    wanted = pod["spec"].get("resourceClaims") or ()
    names = (one.get("resourceClaimName") or made.get(one["name"]) for one in wanted)
    return [name for name in names if name]


def is_alive(pod: Object) -> bool:
    """Neither ended nor on its way out."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in {"Succeeded", "Failed"} and not pod["metadata"].get("deletionTimestamp")


def is_gated(pod: Object) -> bool:
    """Whether kube-scheduler leaves it alone because of Dragoon."""
    gates = pod["spec"].get("schedulingGates") or ()
    return any(one["name"] == gang.GATE for one in gates)
