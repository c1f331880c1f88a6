"""Whether nodes are asked for, and what of what was asked before is not wanted any more. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.api import limits
from dragoon.api.gang import GangObject
from dragoon.gang.provisioning.objects import MOST_SHAPES, Request, request_of
from dragoon.gang.records import PodRecord, Raw

ANNOTATION_CLASS: Final = "dragoon.dev/provisioning-class"
"""On a pod of a gang: the class of the ProvisioningRequest that is made when there is no room."""


@dataclass(frozen=True, slots=True)
class Need:
    """A gang and what is there for it.

    has_no_room: the planner said so. asked: raw ProvisioningRequests of the gang. missing: why
    there are none to be seen, empty where there may be. failed: why the last one could not be
    created.
    """

    gang: GangObject
    pods: Sequence[PodRecord]
    class_name: str
    has_no_room: bool
    asked: tuple[Raw, ...] = ()
    missing: str = ""
    failed: str = ""

    @property
    def bad_class(self) -> str:
        """What is wrong with the class, empty if nothing is."""
        if limits.is_subdomain(self.class_name):
            return ""
        return (
            f"{ANNOTATION_CLASS}: found {self.class_name!r}, allowed is a name such as "
            "check-capacity.autoscaling.x-k8s.io"
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """asking: what is to be created. withdrawn: names and UIDs of requests to be deleted."""

    asking: Request | None = None
    withdrawn: tuple[tuple[str, str], ...] = ()


def class_of(pods: Sequence[PodRecord], otherwise: str) -> str:
    """The class of a gang: what its pods say, else the setting. Empty: nothing is asked for."""
    said = (pod.annotations.get(ANNOTATION_CLASS) for pod in pods if pod.is_alive)
    return next((one for one in said if one), otherwise)


def decide(need: Need) -> Decision:
    """What is to be done: a gang that still has no room needs one request that fits its pods."""
    if need.missing or not need.has_no_room or not need.class_name or need.bad_class:
        return Decision()
    wanted = wanted_of(need)
    if wanted is None:
        return Decision()
    known = {one["metadata"]["name"]: one["metadata"]["uid"] for one in need.asked}
    others = tuple((name, uid) for name, uid in known.items() if name != wanted.name)
    return Decision(None if wanted.name in known else wanted, others)


def wanted_of(need: Need) -> Request | None:
    """The request for the members that have to run together; None where it cannot be made."""
    waiting = [pod for pod in need.pods if pod.is_alive and pod.gated]
    waiting.sort(key=lambda pod: pod.key)
    return request_of(need.gang, need.class_name, waiting[: need.gang.spec.size])


def told(need: Need) -> tuple[str, str, str] | None:
    """Status, reason and message of the condition; None where nothing is asked for."""
    if not need.class_name or not (need.asked or need.has_no_room):
        return None
    if need.missing:
        return "False", "NotServed", f"no ProvisioningRequest: {need.missing}"
    if not need.asked:
        return _not_asked(need)
    newest = max(need.asked, key=lambda one: one["metadata"].get("creationTimestamp") or "")
    return _mirrored(newest)


def _not_asked(need: Need) -> tuple[str, str, str]:
    """Why there is no request yet."""
    if need.bad_class:
        return "False", "BadClass", need.bad_class
    if wanted_of(need) is None:
        limit = f"a ProvisioningRequest takes {MOST_SHAPES} different pods"
        return "False", "TooManyShapes", limit
    if need.failed:
        return "False", "NotCreated", need.failed
    return "Unknown", "Asking", ""


def _mirrored(request: Raw) -> tuple[str, str, str]:
    """What the autoscaler says: failed, else provisioned, else accepted."""
    name = request["metadata"]["name"]
    conditions = {
        one["type"]: one
        for one in (request.get("status") or {}).get("conditions") or ()
        if one.get("status") == "True"
    }
    for type_, status, reason in (
        ("Failed", "False", "Failed"),
        ("BookingExpired", "False", "BookingExpired"),
        ("CapacityRevoked", "False", "CapacityRevoked"),
        ("Provisioned", "True", "Provisioned"),
        ("Accepted", "Unknown", "Accepted"),
    ):
        found = conditions.get(type_)
        if found is not None:
            said = ": ".join(filter(None, (found.get("reason"), found.get("message"))))
            return status, reason, f"ProvisioningRequest {name}: {said}"
    return "Unknown", "Asked", f"ProvisioningRequest {name}: no autoscaler has answered yet"
