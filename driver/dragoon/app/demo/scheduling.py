"""kube-scheduler and the claim controller on the demo's stage: the allocator, and what they write.

Which devices a claim gets is decided by dragoon.allocator alone.
"""

from datetime import UTC, datetime
from typing import Any

from dragoon.allocator.allocate import Allocated, allocate
from dragoon.api import claims, names
from dragoon.app.demo.stage import Answer, Object
from dragoon.kube.port import CLAIMS, CLASSES, NODES, PODS, SLICES, Api


def simulated_class() -> Object:
    """The DeviceClass of simulated GPUs, as deviceclasses/sim.dragoon.dev.yaml has it."""
    driver = names.DRIVER_NAME
    expression = (
        f'device.driver == "{driver}" && '
        f'"gpu" == device.attributes["{driver}"].?type.orValue("") && '
        f'true == device.attributes["{driver}"].?simulated.orValue(false)'
    )
    return {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.kind,
        "metadata": {"name": names.CLASS_SIMULATED},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


async def schedule(api: Api, node: str, namespace: str, claim: str) -> Answer:
    """Allocates a claim on the node and writes it into the claim, or says why it cannot."""
    raw = await api.get(CLAIMS, claim, namespace=namespace)
    found = allocate(
        [raw],
        classes=(await api.list(CLASSES)).items,
        slices=(await api.list(SLICES)).items,
        allocated_claims=(await api.list(CLAIMS)).items,
        node=await api.get(NODES, node),
    )
    if not isinstance(found, Allocated):
        return Answer(why=tuple(found.lines()))
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    allocation = {**found.allocations[0], "allocationTimestamp": now}
    stored = await _write_status(api, raw, {"allocation": allocation})
    given = claims.allocation(stored)
    return Answer(given.devices if given else (), tuple(found.lines()))


async def reserve(api: Api, namespace: str, claim: str, *, pod: str) -> None:
    """Reserves an allocated claim for a pod, as the scheduler does when it binds it."""
    raw = await api.get(CLAIMS, claim, namespace=namespace)
    consumer = await api.get(PODS, pod, namespace=namespace)
    entry = {"resource": PODS.plural, "name": pod, "uid": consumer["metadata"]["uid"]}
    await _write_status(api, raw, {**raw["status"], "reservedFor": [entry]})


async def release(api: Api, namespace: str, claim: str) -> None:
    """Frees and deletes a claim whose pod is gone, as the claim controller does."""
    raw = await api.get(CLAIMS, claim, namespace=namespace)
    await _write_status(api, raw, {})
    await api.delete(CLAIMS, claim, namespace=namespace)


async def _write_status(api: Api, claim: Object, status: dict[str, Any]) -> Object:
    return await api.replace(CLAIMS, {**claim, "status": status}, subresource="status")
