"""What the controller does whether or not there are gangs, and what a gang costs in writes."""

from collections import Counter
from typing import Any

from dragoon.kube.faults import Call
from dragoon.kube.port import CLAIMS, EVENTS, PODS, TAINT_RULES, Object, Resource
from dragoon.kube.throttling import Throttle, ThrottledApi
from tests.scenario.gang.bed import SPACE, Bed
from tests.scenario.pluginbed import DRIVER, until


class Recorder(ThrottledApi):
    """Notes what the controller patches; others' writes are not seen here."""

    def __init__(self, bed: Bed) -> None:
        super().__init__(bed.api, Throttle(1e6, 10**6))
        self.patched: Counter[tuple[str, str | None]] = Counter()

    async def patch(self, resource: Resource, name: str, patch: Any, **more: Any) -> Object:
        self.patched[resource.plural, more.get("subresource")] += 1
        return await super().patch(resource, name, patch, **more)


async def test_a_gang_costs_few_writes_a_member_and_nothing_is_written_twice() -> None:
    async with Bed(nodes=2, gpus=4).up() as bed:
        api = Recorder(bed)
        async with bed.controller(api):
            # They ask for all of a node: a nomination of each holds the room.
            resources = {"requests": {"cpu": "8"}}
            main = {"name": "main", "image": "none", "resources": resources}
            await bed.job("j", 8, containers=[main])
            await bed.phase("j", "Running")

        assert api.patched["pods", "status"] == 8
        assert api.patched["pods", None] == 8
        # The finalizer is missing here: there is no policy that adds it.
        assert api.patched["resourceclaims", "status"] == 8
        assert api.patched["resourceclaims", None] <= 8
        assert api.patched["gangs", "status"] <= 16


async def test_a_device_given_twice_is_guarded_first_then_the_loser_is_evicted() -> None:
    async with Bed(nodes=1, gpus=2).up() as bed, bed.controller():
        await bed.job("j", 1)
        await bed.phase("j", "Running")
        (device,) = next(iter((await bed.allocated()).values()))
        await _stranger(bed, device)

        await until("the loser is evicted", lambda: _is_gone(bed, "stranger"))
        calls = bed.api.faults.calls
        rules = [at for at, one in enumerate(calls) if _creates(one, TAINT_RULES)]
        (eviction,) = [at for at, one in enumerate(calls) if one.subresource == "eviction"]
        assert len([at for at in rules if at < eviction]) == 2  # The fence, then the guard.
        assert await _guards(bed) == ["n0/gpu"]
        await bed.end("j-0", "Succeeded")
        await bed.api.delete(CLAIMS, "stranger", namespace=SPACE)
        await until("the guard goes with the last holder", lambda: _is_open(bed))


def _creates(call: Call, resource: Resource) -> bool:
    return call.verb == "create" and call.resource == resource


async def _is_gone(bed: Bed, pod: str) -> bool:
    names = [one["metadata"]["name"] for one in (await bed.api.list(PODS)).items]
    return pod not in names


async def _guards(bed: Bed) -> list[str]:
    return [
        rule["spec"]["deviceSelector"]["pool"]
        for rule in await bed.rules()
        if rule["metadata"]["labels"]["dragoon.dev/rule"] == "damage"
    ]


async def _is_open(bed: Bed) -> bool:
    return await _guards(bed) == []


async def _stranger(bed: Bed, device: tuple[str, str]) -> None:
    """A pod of a Job, with a claim that somebody gave a device of the gang."""
    await bed.claim("stranger", 1)
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "s", "uid": "s", "controller": True}
    pod = await bed.api.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "stranger", "namespace": SPACE, "ownerReferences": [job]},
            "spec": {
                "nodeName": "n0",
                "containers": [{"name": "main", "image": "none"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "stranger"}],
            },
        },
    )
    pool, name = device
    result = {"request": "gpu", "driver": DRIVER, "pool": pool, "device": name}
    consumer = {"resource": "pods", "name": "stranger", "uid": pod["metadata"]["uid"]}
    # Times are in seconds: of two in the same one the older could be either.
    allocation = {"devices": {"results": [result]}, "allocationTimestamp": "2099-01-01T00:00:00Z"}
    status = {"allocation": allocation, "reservedFor": [consumer]}
    await bed.api.patch(
        CLAIMS, "stranger", {"status": status}, namespace=SPACE, subresource="status"
    )


async def test_a_pod_whose_prepare_failed_is_nudged_once_for_the_event() -> None:
    async with Bed(nodes=1, gpus=2).up() as bed, bed.controller():
        await bed.job("j", 1)
        await until("the pod is bound", lambda: _is_bound(bed))
        pod = await bed.api.get(PODS, "j-0", namespace=SPACE)
        await bed.api.create(EVENTS, _failure(pod))

        async def nudged() -> bool:
            now = await bed.api.get(PODS, "j-0", namespace=SPACE)
            return "dragoon.dev/nudged" in (now["metadata"].get("annotations") or {})

        await until("the pod is nudged", nudged)


async def _is_bound(bed: Bed) -> bool:
    return "j-0" in await bed.bound("j")


def _failure(pod: Object) -> Object:
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": "failed", "namespace": SPACE},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "kubelet",
        "reportingInstance": "n0",
        "action": "Prepare",
        "reason": "FailedPrepareDynamicResources",
        "type": "Warning",
        "regarding": {
            "kind": "Pod",
            "name": "j-0",
            "namespace": SPACE,
            "uid": pod["metadata"]["uid"],
        },
    }
