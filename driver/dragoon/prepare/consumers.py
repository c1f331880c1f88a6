"""Finding who still uses a claim that the kubelet wants to take back.

Kubelets before 1.37 unprepare a claim when one of its pods is deleted while another still runs. So
prepare asks the API server first. The question must never block a rightful unprepare, and the
kubelet unprepares *before* it reports a pod as finished: at that moment the pod still says `phase:
Running`, with no deletionTimestamp, whether its containers ended by themselves or it was evicted.
What tells is its containers: the kubelet calls only after all have stopped, and reports that
independently of the call. A pod therefore uses its claim only while one of its containers is
reported as running; that report may lag a little, which is why the engine looks again for a few
seconds before it refuses.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from dragoon.api import claims
from dragoon.api.claims import ClaimRef
from dragoon.api.names import ENDED
from dragoon.errors import ApiError
from dragoon.kube.port import CLAIMS, PODS, Api

_CONTAINERS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def running_users(
    claim: Mapping[str, Any], uid: str, node: str, pods: Iterable[Mapping[str, Any]]
) -> tuple[str, ...]:
    """`namespace/name` of each pod that uses the claim on this node now.

    pods are those of the claim's namespace. A claim with another UID has no users of ours.
    """
    if claims.claim_ref(claim).uid != uid:
        return ()
    reserved = {pod_uid for _, pod_uid in claims.reserved_pods(claim)}
    return tuple(
        f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
        for pod in pods
        if pod["metadata"]["uid"] in reserved and _runs_here(pod, node)
    )


async def ask(api: Api, claim: ClaimRef, node: str, patience: float) -> tuple[str, ...]:
    """Asks the API server for the running users of a claim.

    Nobody, if the claim is gone or the API server does not answer within `patience` seconds: then
    the kubelet is believed, and nothing waits for a server that is away (case C50).
    """
    try:
        async with asyncio.timeout(patience):
            found = await api.get(CLAIMS, claim.name, namespace=claim.namespace)
            if not claims.reserved_pods(found):
                return ()
            pods = await api.list(PODS, namespace=claim.namespace, fields={"spec.nodeName": node})
    except (ApiError, TimeoutError):
        return ()
    return running_users(found, claim.uid, node, pods.items)


def _runs_here(pod: Mapping[str, Any], node: str) -> bool:
    status = pod.get("status") or {}
    return (
        pod.get("spec", {}).get("nodeName") == node
        and not pod["metadata"].get("deletionTimestamp")
        and status.get("phase") not in ENDED
        and any("running" in (c.get("state") or {}) for c in _containers(status))
    )


def _containers(status: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for field in _CONTAINERS:
        yield from status.get(field) or ()
