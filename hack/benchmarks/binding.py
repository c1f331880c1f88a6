"""What `bindingConditions` would cost a claim, and what kube-scheduler does when one fails.

Devices with a condition hold a pod back until the driver has said on the claim that it is ready.
Pods start one after another; who answers here answers at once, so what is timed is the scheduler.
"""

import argparse
import asyncio
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from dragoon.api.names import CLASS_SIMULATED, DRIVER_NAME
from dragoon.kube.client import KubeClient
from dragoon.kube.connecting import connect
from dragoon.kube.port import CLAIMS, PODS, Object
from testbed.fleet import NAMESPACE, Fleet, control_plane, slices_of

_NODE = "node-00000"
_READY, _FAILED = f"{DRIVER_NAME}/ready", f"{DRIVER_NAME}/failed"


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bench binding`."""
    parser.add_argument("--pods", type=int, default=8, help="pods of each row, one after another")
    parser.add_argument("--name", default="bench", help="name of the cluster")


@dataclass(frozen=True)
class Row:
    """How devices are published, and how often a claim's first devices fail."""

    name: str
    conditions: bool
    failures: int = 0


ROWS = (
    Row("without conditions", conditions=False),
    Row("ready at once", conditions=True),
    Row("first choice fails", conditions=True, failures=1),
)


def run(chosen: argparse.Namespace) -> None:
    """Times every row, prints one line a row and the ratio to the first."""
    found = {row: asyncio.run(_time(chosen, row)) for row in ROWS}
    base = statistics.median(took for took, _ in found[ROWS[0]])
    for row, pods in found.items():
        median = statistics.median(took for took, _ in pods)
        again = sum(len(set(devices)) < len(devices) for _, devices in pods)
        print(
            f"{row.name:<20} created -> bound median {median:7.3f} s   ratio {median / base:6.1f}   "
            f"given a device again that had failed: {again} of {len(pods)}"
        )


async def _time(chosen: argparse.Namespace, row: Row) -> list[tuple[float, list[str]]]:
    """Seconds from create to bound of each pod, and the devices its claim was given in turn."""
    with control_plane(chosen.name) as state:
        kubeconfig = Path(state.kubeconfigs["admin"])
        fleet, client = await Fleet.connect(kubeconfig), await connect(kubeconfig)
        try:
            await fleet.prepare([_NODE], _published(row))
            return [await _Trial(client, f"b{i}", row).run() for i in range(chosen.pods)]
        finally:
            await client.close()
            await fleet.close()


class _Trial:
    """One pod with one claim, and the driver that answers for its devices."""

    def __init__(self, client: KubeClient, name: str, row: Row) -> None:
        self._client = client
        self._name = name
        self._row = row
        self._given: list[str] = []

    async def run(self) -> tuple[float, list[str]]:
        listing = await self._client.list(CLAIMS, namespace=NAMESPACE)
        driver = asyncio.create_task(self._drive(listing.resource_version))
        started = time.monotonic()
        await self._client.create(CLAIMS, _claim(self._name))
        await self._client.create(PODS, _pod(self._name))
        await self._bound()
        took = time.monotonic() - started
        driver.cancel()
        await asyncio.wait([driver])
        for resource in (PODS, CLAIMS):
            await self._client.delete(resource, self._name, namespace=NAMESPACE)
        return took, self._given

    async def _drive(self, version: str) -> None:
        """Says of each device that is allocated whether it is ready, as soon as it is seen."""
        async for event in self._client.watch(
            CLAIMS, resource_version=version, namespace=NAMESPACE
        ):
            claim = event.object
            allocation = (claim.get("status") or {}).get("allocation")
            if claim["metadata"]["name"] != self._name or not allocation:
                continue
            (result,) = allocation["devices"]["results"]
            told = [one for one in (claim["status"].get("devices") or ()) if one.get("conditions")]
            if told and told[0]["device"] == result["device"]:
                continue
            self._given.append(result["device"])
            if self._row.conditions:
                await self._tell(result, ready=len(self._given) > self._row.failures)

    async def _tell(self, result: Object, *, ready: bool) -> None:
        condition = {
            "type": _READY if ready else _FAILED,
            "status": "True",
            "reason": "Tried",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        told = {key: result[key] for key in ("driver", "pool", "device")}
        status = {"devices": [{**told, "conditions": [condition]}]}
        await self._client.patch(
            CLAIMS, self._name, {"status": status}, namespace=NAMESPACE, subresource="status"
        )

    async def _bound(self) -> None:
        listing = await self._client.list(PODS, namespace=NAMESPACE)
        if any(_is_bound(pod, self._name) for pod in listing.items):
            return
        async for event in self._client.watch(
            PODS, resource_version=listing.resource_version, namespace=NAMESPACE
        ):
            if _is_bound(event.object, self._name):
                return


def _is_bound(pod: Object, name: str) -> bool:
    return bool(pod["metadata"]["name"] == name and pod["spec"].get("nodeName"))


def _published(row: Row) -> list[Object]:
    """The slices of one simulated DGX, whole GPUs only."""
    found = slices_of([_NODE], "dgx-h100")
    if row.conditions:
        for device in (one for piece in found for one in piece["spec"]["devices"]):
            device |= {"bindingConditions": [_READY], "bindingFailureConditions": [_FAILED]}
    return found


def _claim(name: str) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": CLASS_SIMULATED}}
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"devices": {"requests": [request]}},
    }


def _pod(name: str) -> Object:
    container = {"name": "c", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        },
    }
