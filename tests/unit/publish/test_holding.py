"""Which devices the claims of this node's pods have."""

from typing import Any

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, PODS, Object
from dragoon.publish.holding import allocated
from tests.unit.publish.nodes import DRIVER, NODE

POOL = f"{NODE}/gpu"


def result(device: str, driver: str = DRIVER, pool: str = POOL) -> Object:
    return {"request": "g", "driver": driver, "pool": pool, "device": device}


async def claim(api: MemoryApi, name: str, *results: Object) -> None:
    request = {"name": "g", "exactly": {"deviceClassName": "gpu.dragoon.dev"}}
    made = await api.create(
        CLAIMS,
        {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
        },
    )
    if results:
        status = {"allocation": {"devices": {"results": list(results)}}}
        await api.replace(CLAIMS, {**made, "status": status}, subresource="status")


async def pod(api: MemoryApi, name: str, node: str, *claims: str, **status: Any) -> None:
    made = await api.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "c", "image": "i"}],
                "resourceClaims": [{"name": c, "resourceClaimName": c} for c in claims],
            },
        },
    )
    if status:
        await api.replace(PODS, {**made, "status": status}, subresource="status")


async def test_devices_of_bound_pods_are_held_however_their_claims_were_made() -> None:
    api = MemoryApi()
    await claim(api, "by-hand", result("d1"), result("nic", "nic.example.com"))
    await claim(api, "from-template", result("d2"), result("d2", pool="other/gpu"))
    await claim(api, "extended", result("d3"))
    await claim(api, "elsewhere", result("d4"))
    await claim(api, "not-yet")
    made = {
        "resourceClaimStatuses": [{"name": "t", "resourceClaimName": "from-template"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
    }
    await pod(api, "here", NODE, "by-hand", "not-yet", "gone", **made)
    await pod(api, "there", "node-b", "elsewhere")
    found = await allocated(api, driver=DRIVER, pool=POOL, node=NODE)
    assert found == {"d1", "d2", "d3"}


async def test_a_node_without_pods_asks_for_no_claim() -> None:
    api = MemoryApi()
    assert await allocated(api, driver=DRIVER, pool=POOL, node=NODE) == frozenset()
    assert {call.resource for call in api.faults.calls} == {PODS}
