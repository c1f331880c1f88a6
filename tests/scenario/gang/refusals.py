"""What plugins and kubelets say of pods that cannot start, and what came of it."""

from typing import Any

from dragoon.gang import nudging
from dragoon.gang.protocol.executing import ANNOTATION_NUDGED
from dragoon.kube.port import CLAIMS, EVENTS, PODS
from tests.scenario.gang.bed import SPACE, Bed
from tests.scenario.gang.standins import devices_of
from tests.scenario.pluginbed import DRIVER


async def refuse(bed: Bed, pod: str, on_refusal: str) -> None:
    """As the plugin of the node says it in the claim's status."""
    listing = await bed.api.list(CLAIMS, namespace=SPACE)
    (claim,) = [one for one in listing.items if one["metadata"]["name"].startswith(f"{pod}-")]
    ((pool, device),) = devices_of(claim)
    ready = {"type": "Ready", "status": "False", "reason": "UnknownDevice", "message": "no such"}
    entry: dict[str, Any] = {"driver": DRIVER, "pool": pool, "device": device}
    entry |= {"conditions": [ready], "data": {"onRefusal": on_refusal}}
    await bed.api.patch(
        CLAIMS,
        claim["metadata"]["name"],
        {"status": {"devices": [entry]}},
        namespace=SPACE,
        subresource="status",
    )


async def fails_to_prepare(bed: Bed, pod: str, count: Any) -> None:
    """As the pod's kubelet says it. count: how often that happened."""
    uid = (await bed.api.get(PODS, pod, namespace=SPACE))["metadata"]["uid"]
    await bed.api.create(
        EVENTS,
        {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": pod, "namespace": SPACE},
            "reason": nudging.REASON,
            "regarding": {"kind": "Pod", "name": pod, "namespace": SPACE, "uid": uid},
            "deprecatedCount": count,
            "type": "Warning",
            "eventTime": "2026-11-29T19:00:00.000000Z",
            "reportingController": "kubelet",
            "reportingInstance": "n0",
            "action": "Preparing",
        },
    )


async def is_woken(bed: Bed, pod: str) -> bool:
    meta = (await bed.api.get(PODS, pod, namespace=SPACE))["metadata"]
    return ANNOTATION_NUDGED in (meta.get("annotations") or {})


def evictions(bed: Bed) -> list[str]:
    return [call.name for call in bed.api.faults.calls if call.subresource == "eviction"]
