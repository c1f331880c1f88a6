"""The audit in the node process: a process where no claim has put it becomes visible to users."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dragoon.api.claims import ClaimRef
from dragoon.api.device_status import ENFORCED, condition
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.occupants import ProcessState
from dragoon.kube.port import CLAIMS, EVENTS, PODS, Object
from testbed.waiting import PATIENCE
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until

FIRST = "gpu-0000-11-00-0"
GIB = 1 << 30
CONTAINER = "c" * 64


async def running_pod(bed: Bed, name: str) -> Object:
    pod = await bed.memory.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "i"}]},
        },
    )
    pod["status"] = {
        "phase": "Running",
        "containerStatuses": [{"name": "main", "containerID": f"containerd://{CONTAINER}"}],
    }
    return await bed.memory.replace(PODS, pod, subresource="status")


def process_in(pod: Object, pid: int) -> ProcessState:
    uid = pod["metadata"]["uid"].replace("-", "_")
    scope = f"kubepods.slice/kubepods-pod{uid}.slice/cri-containerd-{CONTAINER}.scope"
    return ProcessState(pid, "python", GIB, cgroup=f"/sys/fs/cgroup/{scope}", started=pid)


T = TypeVar("T")


async def becomes(what: str, look: Callable[[], Awaitable[T | None]]) -> T:
    """Waits for the 10 s in which the audit tells, and those that a busy machine takes."""
    try:
        async with asyncio.timeout(PATIENCE):
            while (found := await look()) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE:g} s: {what}") from None
    return found


async def enforced(bed: Bed, claim: ClaimRef, reason: str) -> None:
    """Waits until the condition of the claim's only device has that reason."""

    async def look() -> bool | None:
        raw = await bed.memory.get(CLAIMS, claim.name, namespace=claim.namespace)
        conditions = [condition(one, ENFORCED) for one in raw["status"].get("devices") or ()]
        return any(one and one["reason"] == reason for one in conditions) or None

    await becomes(reason, look)


async def the_event(bed: Bed) -> Object:
    """The one event that the audit writes."""

    async def look() -> Object | None:
        events = (await bed.memory.list(EVENTS)).items
        return next((one for one in events if one["action"] == "Audit"), None)

    return await becomes("an event", look)


async def test_a_process_without_the_claim_is_a_condition_an_event_and_a_metric(bed: Bed) -> None:
    async with bed.kubelet() as kubelet, bed.running() as plugin:
        await kubelet.wait_registered(DRIVER)
        hardware = Hardware(bed.root / "gpus.json")
        claim = await bed.allocated_claim("victim", FIRST)
        await kubelet.prepare(DRIVER, [claim])
        await enforced(bed, claim, "WholeGpu")
        stranger = await running_pod(bed, "stranger")

        hardware.run(0, process_in(stranger, 4711))
        hardware.run(1, ProcessState(99, "Xorg", cgroup="/sys/fs/cgroup/system.slice/x.service"))

        await enforced(bed, claim, "ProcessOnOthersDevice")
        event = await the_event(bed)
        assert event["regarding"]["name"] == "stranger"
        assert event["type"] == "Warning"
        assert "python (pid 4711) in container main of pod default/stranger" in event["note"]
        # Cards are looked at side by side: the second process may be seen one look later.
        wanted = {
            f'dragoon_audit_{metric}{{cause="{cause}"}} 1.0'
            for metric in ("standing", "findings_total")
            for cause in ("ProcessOnOthersDevice", "ProcessOutsidePods")
        }
        await until(
            "both are counted",
            lambda: wanted <= set(plugin.metrics.text().decode().splitlines()),
        )

        hardware.end(0, 4711)
        await enforced(bed, claim, "WholeGpu")
        assert 'cause="ProcessOnOthersDevice"} 0.0' in plugin.metrics.text().decode()
