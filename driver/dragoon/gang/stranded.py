"""Pods that were bound past kube-scheduler, with a claim that has no devices. Pure.

Their node was chosen by `spec.nodeName` or by a scheduler that knows nothing of claims. The stock
components allocate only for pods that kube-scheduler places, so such a pod waits at its kubelet for
ever (case C48). Members of gangs are planned on the node where they are; of others it is told.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from dragoon.api import gang
from dragoon.api.claims import allocation
from dragoon.gang.protocol.actions import Note
from dragoon.gang.protocol.model import Raw
from dragoon.gang.protocol.viewing import ref
from dragoon.gang.records import PodRecord

REASON: Final = "NotAllocated"
Lookup = Callable[[str, str], Raw | None]


def is_stranded(pod: PodRecord, claims: Lookup) -> bool:
    """Whether a pod is bound and one of its claims has no devices. claims: by namespace, name."""
    return bool(pod.node) and pod.is_alive and bool(_without_devices(pod, claims))


def stranded(pod: PodRecord, claims: Lookup, is_ours: Callable[[str], bool]) -> Note | None:
    """What to tell of a pod, if anything. is_ours: whether a DeviceClass is for our devices."""
    if pod.group is not None or pod.raw is None or not is_stranded(pod, claims):
        return None
    waiting = [one for one in _without_devices(pod, claims) if any(map(is_ours, _classes(one)))]
    if not waiting:
        return None
    chosen = "spec.nodeName" if pod.scheduler == "default-scheduler" else pod.scheduler
    return Note(
        REASON,
        f"{chosen} put the pod on node {pod.node}, past kube-scheduler, and claim "
        f"{waiting[0]['metadata']['name']} has no devices: nobody will give it any. Make the pod "
        f"anew without a node of its own, or with the label {gang.LABEL} and the annotation "
        f'{gang.ANNOTATION_SIZE}: "1": then its claims are allocated for that node',
        pod=ref(pod.raw),
    )


def _without_devices(pod: PodRecord, claims: Lookup) -> list[Raw]:
    found = (claims(pod.namespace, name) for name in pod.claims)
    return [one for one in found if one is not None and allocation(one) is None]


def _classes(claim: Raw) -> Iterator[str]:
    """The classes that a raw claim asks for, in every alternative."""
    requests: list[dict[str, Any]] = ((claim.get("spec") or {}).get("devices") or {}).get(
        "requests"
    ) or []
    for one in requests:
        for wanted in (one.get("exactly") or {}, *(one.get("firstAvailable") or ())):
            yield wanted.get("deviceClassName") or ""
