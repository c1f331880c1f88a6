"""Who of several holders keeps what was given twice. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from dragoon.api import device_status
from dragoon.api.gang import GATE, Owner
from dragoon.api.names import ENDED
from dragoon.gang.protocol.model import Raw, Ref
from dragoon.gang.protocol.viewing import ref
from dragoon.gang.records import controller_of

_PREPARED = "PodReadyToStartContainers"
"""Condition of a pod whose sandbox stands: its claims were prepared before (KEP-3085)."""


@dataclass(frozen=True, slots=True)
class User:
    """A pod that uses a claim. marked: it was told already."""

    ref: Ref
    gated: bool
    deleting: bool
    owner: Owner | None
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that holds what others hold too. since: when it was allocated (RFC 3339)."""

    ref: Ref
    since: str
    prepared: bool
    users: tuple[User, ...]

    @property
    def is_waiting(self) -> bool:
        """Whether it belongs to a gang that is being placed: that takes it back by itself."""
        return bool(self.users) and all(user.gated for user in self.users)


def ranked(holders: Iterable[Holder]) -> list[Holder]:
    """The holders, the one that keeps it first.

    A prepared claim has a running container. Else the older allocation wins, as it had the device
    when the other one came; gated pods lose, for nothing of theirs has begun.
    """
    return sorted(
        holders,
        key=lambda one: (not one.prepared, one.is_waiting, one.since, one.ref.uid),
    )


def holder_of(claim: Raw, pods: Iterable[Raw], *, marked: str) -> Holder:
    """A raw claim and the raw pods that name it. marked: the annotation on pods that were told."""
    living = [pod for pod in pods if not _has_ended(pod)]
    meta, status = claim["metadata"], claim.get("status") or {}
    allocation = status.get("allocation") or {}
    return Holder(
        ref=ref(claim),
        since=allocation.get("allocationTimestamp") or meta.get("creationTimestamp") or "",
        prepared=_is_ready(status) or any(map(is_prepared, living)),
        users=tuple(_user(pod, marked) for pod in living),
    )


def _has_ended(pod: Raw) -> bool:
    return (pod.get("status") or {}).get("phase") in ENDED


def _is_ready(status: Raw) -> bool:
    """Whether the node plugin says of a device that it was prepared."""
    found = (
        device_status.condition(entry, device_status.READY) for entry in status.get("devices") or ()
    )
    return any(one is not None and one.get("status") == "True" for one in found)


def is_prepared(pod: Raw) -> bool:
    """Whether the claims of a raw pod have been prepared: its sandbox stood at some time."""
    status = pod.get("status") or {}
    if status.get("phase") == "Running":
        return True
    return any(
        one.get("type") == _PREPARED and one.get("status") == "True"
        for one in status.get("conditions") or ()
    )


def _user(pod: Raw, marked: str) -> User:
    meta = pod["metadata"]
    gates = [gate["name"] for gate in (pod.get("spec") or {}).get("schedulingGates") or ()]
    return User(
        ref=ref(pod),
        gated=GATE in gates,
        deleting=bool(meta.get("deletionTimestamp")),
        owner=controller_of(pod),
        marked=marked in (meta.get("annotations") or {}),
    )
