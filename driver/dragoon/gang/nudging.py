"""Wakes kubelets that wait after a failed prepare. Pure.

A kubelet tries a failed prepare again only after 60 to 90 s, whatever the error; any change of the
pod's metadata makes it try at once (tried with Kubernetes 1.37.2). It says so in an event of the
pod.
Everything needed to decide is in the API: the event counts, the pod's annotation says for which
event and when it was nudged last, so a new leader nudges nobody twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dragoon.api.claims import allocation
from dragoon.api.device_status import refusals
from dragoon.gang.arbiter.ranking import is_prepared
from dragoon.gang.protocol.actions import Nudge
from dragoon.gang.protocol.executing import ANNOTATION_NUDGED
from dragoon.gang.protocol.model import Raw
from dragoon.gang.protocol.viewing import ref
from dragoon.gang.records import PodRecord

REASON: Final = "FailedPrepareDynamicResources"
"""The reason of the kubelet's event (k8s.io/kubernetes 1.37 pkg/kubelet/events)."""
FIELDS: Final[Mapping[str, str]] = {"reason": REASON}
"""The field selector with which these events are watched."""


@dataclass(frozen=True, slots=True)
class NudgeSettings:
    """Seconds. pause: between two nudges of one pod, doubled with each failure up to longest.

    After `longest` the kubelet tries by itself.
    """

    pause: float = 2.0
    longest: float = 60.0


@dataclass(frozen=True, slots=True)
class Later:
    """Too early: look at the event again in so many seconds."""

    seconds: float


def nudge(
    event: Raw,
    pod: PodRecord | None,
    claims: Callable[[str, str], Raw | None],
    *,
    driver: str,
    now: datetime,
    settings: NudgeSettings,
) -> Nudge | Later | None:
    """What to do about a raw event (events.k8s.io/v1): nudge its pod now, later, or not at all.

    Not for a pod that runs or has gone, one without a claim of ours, one of which a claim is
    refused for good, or is not allocated or reserved for it yet, and not twice for one event.
    """
    if pod is None or pod.raw is None or not _concerns(event, pod):
        return None
    if not _waits_for_us(pod, pod.raw, claims, driver):
        return None
    this = f"{event['metadata']['uid']}/{_count(event)}"
    last, at = _last(pod.raw)
    if last == this:
        return None
    if at is not None:
        pause = min(settings.longest, settings.pause * 2.0 ** min(_count(event) - 1, 10))
        left = pause - (now - at).total_seconds()
        if left > 0:
            return Later(left)
    return Nudge(ref(pod.raw), f"{this} {now.astimezone(UTC).isoformat(timespec='seconds')}")


def _concerns(event: Raw, pod: PodRecord) -> bool:
    regarding = event.get("regarding") or {}
    same = regarding.get("uid") == pod.uid and regarding.get("kind") == "Pod"
    return same and event.get("reason") == REASON


def _waits_for_us(
    pod: PodRecord, raw: Raw, claims: Callable[[str, str], Raw | None], driver: str
) -> bool:
    if not pod.node or not pod.is_alive or is_prepared(raw):
        return False
    found = [claims(pod.namespace, name) for name in pod.claims]
    if not all(claim is not None and _is_reserved(claim, pod.uid) for claim in found):
        return False
    ours = [claim for claim in found if claim is not None and _is_ours(claim, driver)]
    return bool(ours) and not any(
        refusal.is_final for claim in ours for refusal in refusals(claim, driver)
    )


def _is_reserved(claim: Raw, pod: str) -> bool:
    """Whether the kubelet would take the claim: it is reserved for the pod, or for its PodGroup."""
    consumers = (claim.get("status") or {}).get("reservedFor") or ()
    return any(one.get("uid") == pod or one.get("resource") == "podgroups" for one in consumers)


def _is_ours(claim: Raw, driver: str) -> bool:
    given = allocation(claim)
    return given is not None and any(one.driver == driver for one in given.devices)


def _count(event: Raw) -> int:
    """How often it happened: the kubelet writes core/v1 events, which count in this field."""
    series = event.get("series") or {}
    return int(series.get("count") or event.get("deprecatedCount") or 1)


def _last(pod: Raw) -> tuple[str, datetime | None]:
    """For which event the pod was nudged last, and when."""
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_NUDGED) or ""
    this, _, when = text.partition(" ")
    try:
        at = datetime.fromisoformat(when)
    except ValueError:
        return this, None
    return this, at if at.tzinfo else None
