"""A refusal is no dead end: what users and the scheduler see of it, and that it goes again."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoon.api import device_status, names
from dragoon.api.claims import ClaimRef
from dragoon.api.forms import Form
from dragoon.errors import KubeletError
from dragoon.gpu.faults import CardInUseError
from dragoon.gpu.obstacles import Obstacle
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.port import FixedGpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.occupants import ProcessState
from dragoon.kube.port import CLAIMS, EVENTS, PODS, Object
from dragoon.prepare.blocking import Blocking
from dragoon.prepare.cards import DriverCards
from dragoon.prepare.effects import HostEffects
from dragoon.publish.blocking import taint
from testbed.waiting import PATIENCE
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until
from tests.unit.prepare.scene import Scene, result

A100 = "dgx-a100-40gb"


async def raw(bed: Bed, claim: ClaimRef) -> Object:
    return await bed.memory.get(CLAIMS, claim.name, namespace=claim.namespace)


async def becomes(bed: Bed, claim: ClaimRef, status: str, reason: str) -> list[Object]:
    """The entries of the claim's status as soon as Ready says so for all of them."""
    async with asyncio.timeout(PATIENCE):
        while True:
            entries = (await raw(bed, claim))["status"].get("devices") or []
            ready = [device_status.condition(one, device_status.READY) for one in entries]
            if ready and all(
                one and (one["status"], one["reason"]) == (status, reason) for one in ready
            ):
                return list(entries)
            await asyncio.sleep(0.01)


async def events(bed: Bed, reason: str) -> list[Object]:
    found = (await bed.memory.list(EVENTS, namespace="default")).items
    return [one for one in found if one["reason"] == reason]


async def owned_by_a_pod(bed: Bed, claim: ClaimRef) -> Object:
    """A pod that has reserved the claim."""
    pod = await bed.memory.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "i"}]},
        },
    )
    held = await raw(bed, claim)
    consumer = {"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}
    held["status"]["reservedFor"] = [consumer]
    await bed.memory.replace(CLAIMS, held, subresource="status")
    return pod


def taint_of(device: Object) -> dict[str, Any] | None:
    found = [one for one in device.get("taints") or () if one["key"] == names.TAINT_BLOCKED]
    return found[0] if found else None


async def test_a_claim_for_a_device_that_is_not_here_says_so_and_asks_for_eviction(
    bed: Bed,
) -> None:
    claim = await bed.allocated_claim("a", "gpu-0000-ff-00-0")
    pod = await owned_by_a_pod(bed, claim)
    async with bed.kubelet() as kubelet, bed.running(on_refusal="Evict"):
        await kubelet.wait_registered(DRIVER)
        for _ in range(3):
            with pytest.raises(KubeletError, match="UnknownDevice") as refused:
                await kubelet.prepare(DRIVER, [claim])
            await becomes(bed, claim, "False", "UnknownDevice")
        told = device_status.wants_eviction(await raw(bed, claim), DRIVER)
        assert told is not None
        assert told.message in str(refused.value)
        (event,) = await events(bed, "UnknownDevice")
    assert event["regarding"]["uid"] == pod["metadata"]["uid"]
    assert "delete the pod and its claim" in event["note"]


async def test_c21_a_card_to_blame_is_tainted_in_the_form_that_it_cannot_take_until_it_can(
    bed: Bed,
) -> None:
    gpus = bed.gpus(A100)
    hardware = Hardware(bed.root / "gpus.json")
    hardware.set_mig_mode(0, enabled=True)
    async with (
        bed.kubelet() as kubelet,
        bed.running(gpus, forms="whole,mig", inventory_seconds=1) as plugin,
    ):
        await until("published", lambda: not plugin.not_ready())
        (mig, *_) = sorted(name for name in await devices(bed) if "-mig-" in name)
        hardware.set_mig_mode(0, enabled=False)
        whole = mig.partition("-mig-")[0]
        await devices_become(bed, lambda all_: whole in all_)
        claim = await bed.allocated_claim("a", mig)
        with pytest.raises(KubeletError, match="ResetRequired"):
            await kubelet.prepare(DRIVER, [claim])
        await becomes(bed, claim, "False", "ResetRequired")
        found = await devices_become(bed, lambda all_: taint_of(all_[mig]) is not None)
        taint = taint_of(found[mig])
        assert taint is not None
        assert (taint["value"], taint["effect"]) == ("ResetRequired", "NoSchedule")
        assert taint_of(found[whole]) is None
        assert plugin.state()["blocked"][0]["code"] == "ResetRequired"

        hardware.set_mig_mode(0, enabled=True)
        await devices_become(bed, lambda all_: not all_[mig].get("taints"))
        await kubelet.prepare(DRIVER, [claim])
        (entry,) = await becomes(bed, claim, "True", "Prepared")
    assert entry["data"]["tier"] == "mig"
    assert entry["data"]["migUUID"].startswith("MIG-")


async def devices(bed: Bed) -> dict[str, Object]:
    return {
        device["name"]: device
        for slice_ in await bed.slices()
        for device in slice_["spec"].get("devices", ())
    }


async def devices_become(
    bed: Bed, wanted: Callable[[dict[str, Object]], bool]
) -> dict[str, Object]:
    """All devices, as soon as they are as wanted."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await devices(bed)
            if wanted(found):
                return found
            await asyncio.sleep(0.01)


async def test_a_prepared_claim_says_what_it_has_and_loses_nothing_in_a_restart(
    bed: Bed,
) -> None:
    claim = await bed.allocated_claim("a", "gpu-0000-11-00-0", "gpu-0000-13-00-0")
    async with bed.kubelet() as kubelet:
        async with bed.running():
            await kubelet.wait_registered(DRIVER)
            await kubelet.prepare(DRIVER, [claim])
            entries = await becomes(bed, claim, "True", "Prepared")
        assert [one["device"] for one in entries] == ["gpu-0000-11-00-0", "gpu-0000-13-00-0"]
        assert all(one["data"]["gpuUUID"].startswith("GPU-") for one in entries)
        before = await raw(bed, claim)
        async with bed.running() as plugin:
            await until("registered", lambda: not plugin.not_ready())
            await kubelet.prepare(DRIVER, [claim])
            later = await bed.allocated_claim("b", "gpu-0000-15-00-0")
            await kubelet.prepare(DRIVER, [later])
            await becomes(bed, later, "True", "Prepared")
            assert await raw(bed, claim) == before


async def test_c21_a_process_in_the_way_of_mig_is_named_in_the_taint_until_it_has_ended(
    tmp_path: Path,
) -> None:
    gpus = open_gpus("dgx-h100", tmp_path / "gpus.json", node=NODE, beside_driver=True)
    hardware = Hardware(tmp_path / "gpus.json")
    hardware.run(0, ProcessState(4711, "python", 1 << 30))
    scene = Scene(root=tmp_path, gpus=FixedGpus(gpus.inventory()))
    effects = HostEffects(Path("/proc"), DriverCards(gpus.limits, gpus.mig))
    engine = await scene.started(effects, forms=lambda: tuple(Form), wait_s=0.0)
    device = "gpu-0000-11-00-0-mig-3g40gb-4"
    claim = await scene.claim("c", result(device=device))
    shown: list[tuple[Obstacle, ...]] = []
    blocking = Blocking(gpus.mig, gpus.processes, shown.append, lambda: None)
    watching = asyncio.create_task(blocking.run())

    with pytest.raises(CardInUseError, match=r"python \(pid 4711\)"):
        await engine.prepare(claim)
    blocking.observe(scene.events[-1])
    await until("it is blocked", lambda: bool(shown))
    (obstacle,) = shown[-1]
    assert obstacle.blocks(device)
    assert taint(obstacle).value == "CardInUse-python-pid-4711"

    hardware.end(0, 4711)
    blocking.look_now()
    await until("it is free", lambda: shown[-1] == ())
    assert [one.device for one in await engine.prepare(claim)] == [device]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    gpus.close()
