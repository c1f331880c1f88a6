"""The rights in app.permissions against the calls that a node process really makes."""

from collections.abc import Callable
from typing import Any

from dragoon.app import permissions
from dragoon.gpu.sim.hardware import Hardware
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, NODES, PODS, SLICES, Resource
from dragoon.publish.slices import render
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until

FIRST = "gpu-0000-11-00-0"
RBAC_VERBS = {"replace": "update"}
"""Where the verb of the port is not RBAC's."""


class Recording:
    """The API server, with a note of every call made through it."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self.made: set[tuple[str, str]] = set()

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(resource: Resource, *arguments: Any, **options: Any) -> Any:
            self.made.add((RBAC_VERBS.get(verb, verb), resource.plural))
            return getattr(self._api, verb)(resource, *arguments, **options)

        return call


async def test_every_call_is_granted_and_nothing_is_granted_that_is_never_called(
    bed: Bed,
) -> None:
    recording = Recording(bed.memory)
    gpus = bed.gpus()
    hardware = Hardware(bed.root / "gpus.json")
    await let_a_device_plugin_offer(bed, "8")
    async with (
        bed.kubelet() as kubelet,
        bed.running(gpus, api=recording, inventory_seconds=1) as plugin,
    ):
        await until("published", lambda: not plugin.not_ready())
        await leave_an_obsolete_slice(bed)
        await until("it is deleted", lambda: ("delete", SLICES.plural) in recording.made)
        claim = await bed.allocated_claim("a", FIRST)
        await kubelet.prepare(DRIVER, [claim])
        await reserve_for_an_ended_pod(bed, "a")
        await kubelet.unprepare(DRIVER, [claim])

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

    assert recording.made == {
        (verb, rule.resource.plural) for rule in permissions.PLUGIN_RULES for verb in rule.verbs
    }


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
