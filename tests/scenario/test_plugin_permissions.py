"""The rights in app.permissions against the calls that a node process really makes."""

import hashlib
import sys
from pathlib import Path
from typing import Any

from dragoon.api.claims import ClaimRef, claim_ref
from dragoon.app import permissions
from dragoon.gpu.sim.hardware import Hardware
from dragoon.kube.port import CLAIMS, NODES, PODS, SLICES
from dragoon.publish.slices import render
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until
from tests.scenario.recording import Recording, rights

FIRST = "gpu-0000-11-00-0"


async def test_every_call_is_granted_and_nothing_is_granted_that_is_never_called(
    bed: Bed,
) -> None:
    recording = Recording(bed.memory)
    gpus = bed.gpus()
    hardware = Hardware(bed.root / "gpus.json")
    await let_a_device_plugin_offer(bed, "8")
    async with (
        bed.kubelet() as kubelet,
        bed.running(gpus, api=recording, inventory_seconds=1, **a_library(bed)) as plugin,
    ):
        await until("published", lambda: not plugin.not_ready())
        await leave_an_obsolete_slice(bed)
        await until("it is deleted", lambda: ("delete", SLICES.plural) in recording.made)
        claim = await bed.allocated_claim("a", FIRST)
        await kubelet.prepare(DRIVER, [claim])
        status = ("patch", f"{CLAIMS.plural}/status")
        await until("its status is written", lambda: status in recording.made)
        await reserve_for_an_ended_pod(bed, "a")
        await kubelet.unprepare(DRIVER, [claim])
        await kubelet.prepare(DRIVER, [await a_pods_share(bed, f"{FIRST}-shared")])

        await until("the other owner is told", lambda: ("create", "events") in recording.made)
        # What was told once and is told again is counted in the same event. A change of the
        # hardware makes the node look for other owners at once.
        await let_a_device_plugin_offer(bed, "0")
        hardware.lose(0)
        await until("the owner is gone", lambda: not plugin.state()["otherOwners"])
        await let_a_device_plugin_offer(bed, "8")
        hardware.bring_back(0)
        await until("it is told again", lambda: ("patch", "events") in recording.made)
        await until("slices were updated", lambda: ("update", SLICES.plural) in recording.made)

    # The API server asks for the rights of a driver while it validates a status: nobody calls them.
    # That they are needed, and enough, is in tests/contract.
    called = [rule for rule in permissions.PLUGIN_RULES if not rule.of_driver]
    assert recording.made == rights(*called)


async def leave_an_obsolete_slice(bed: Bed) -> None:
    """A second slice of the pool, as an earlier process with more devices left it."""
    (slice_,) = render(bed.gpus().inventory(), node=NODE, driver=DRIVER)
    slice_["metadata"]["generateName"] = f"00001-{DRIVER}-{NODE}-"
    slice_["spec"]["devices"] = []
    await bed.memory.create(SLICES, slice_)


async def let_a_device_plugin_offer(bed: Bed, count: str) -> None:
    status = {"status": {"allocatable": {"nvidia.com/gpu": count}}}
    await bed.memory.patch(NODES, NODE, status, subresource="status")


async def reserve_for_an_ended_pod(bed: Bed, claim: str) -> None:
    pod = await bed.memory.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "ended", "namespace": "default"},
            "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "none"}]},
        },
    )
    raw = await bed.memory.get(CLAIMS, claim, namespace="default")
    consumer = {"resource": "pods", "name": "ended", "uid": pod["metadata"]["uid"]}
    raw["status"]["reservedFor"] = [consumer]
    await bed.memory.replace(CLAIMS, raw, subresource="status")


def a_library(bed: Bed) -> dict[str, Any]:
    """The settings for a file that could be loaded into containers."""
    path = bed.root / "libvgpu.so"
    path.write_bytes(Path(sys.executable).resolve().read_bytes()[:4096])
    path.chmod(0o644)
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"hami_library": str(path), "hami_sha256": checksum}


async def a_pods_share(bed: Bed, device: str) -> ClaimRef:
    """A share that was made for a pod, which must be read before it can be limited."""
    owner = await bed.sharer()
    request = {"name": "gpu", "exactly": {"deviceClassName": "shared.dragoon.dev"}}
    claim = await bed.memory.create(
        CLAIMS,
        {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {
                "name": "share",
                "namespace": "default",
                "ownerReferences": [owner],
            },
            "spec": {"devices": {"requests": [request]}},
        },
    )
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": f"{NODE}/gpu",
        "device": device,
        "shareID": "7d3c6a3e-57a5-4d0e-9d3e-6f0f3f1f2a3b",
        "consumedCapacity": {"memory": "4Gi", "cores": "0"},
    }
    claim["status"] = {"allocation": {"devices": {"results": [result]}}}
    return claim_ref(await bed.memory.replace(CLAIMS, claim, subresource="status"))
