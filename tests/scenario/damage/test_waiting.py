"""Every reason for which a claim waits, each told by `dragoon explain` with its code."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoon.api import gang
from dragoon.diagnose.explaining import Explained, explain_gang, explain_pod
from dragoon.diagnose.gathering import gather
from dragoon.diagnose.waiting import REASONS
from dragoon.kube.port import CLAIMS, CLASSES, GANGS, NODES, PODS, SLICES, TEMPLATES, Object
from tests.scenario.damage.cluster_world import DRIVER, NODE, ClusterWorld
from tests.scenario.damage.damages import Damage, Damages

DAMAGES: Damages[ClusterWorld] = Damages()
"""The code, what the message says, and the damage."""
told_as = DAMAGES.row
_SHARE = "11111111-2222-4333-8444-555555555555"
WHOLE = "sim.dragoon.dev"


def wanted(**fields: Any) -> Object:
    """A request for a simulated GPU."""
    return {"name": "gpu", "exactly": {"deviceClassName": WHOLE, **fields}}


async def wish(world: ClusterWorld, *requests: Object, **devices: Any) -> None:
    """Another claim in place of the one that the pod has."""
    spec = {"devices": {"requests": list(requests), **devices}}
    await world.api.delete(CLAIMS, "wants", namespace="default")
    meta = {"name": "wants", "namespace": "default", "finalizers": []}
    await world.api.create(CLAIMS, {"metadata": meta, "spec": spec})


async def pending(world: ClusterWorld) -> None:
    """A pod that waits for one GPU."""
    world.admission.clear()
    spec = {"devices": {"requests": [wanted()]}}
    await world.api.create(
        CLAIMS, {"metadata": {"name": "wants", "namespace": "default"}, "spec": spec}
    )
    await world.pod("p", resourceClaims=[{"name": "g", "resourceClaimName": "wants"}])


async def explained(world: ClusterWorld) -> Explained:
    return explain_pod(await gather(world.api), "default", "p")


async def on_every_node(world: ClusterWorld, edit: Callable[[Any], None]) -> None:
    for node in (NODE, "n2"):
        await world.edit_slice(edit, node)


@told_as("WAIT001", "nvidia.com")
async def the_class_is_not_there(world: ClusterWorld) -> None:
    await wish(world, {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}})


@told_as("WAIT001", WHOLE)
async def the_class_was_deleted(world: ClusterWorld) -> None:
    await world.api.delete(CLASSES, WHOLE)


@told_as("WAIT002", "class mig.dragoon.dev")
async def no_device_is_of_the_class(world: ClusterWorld) -> None:
    await wish(world, {"name": "gpu", "exactly": {"deviceClassName": "mig.dragoon.dev"}})


@told_as("WAIT003", "productName")
async def no_device_matches_the_selector(world: ClusterWorld) -> None:
    text = f"device.attributes['{DRIVER}'].productName == 'NVIDIA B200'"
    await wish(world, wanted(selectors=[{"cel": {"expression": text}}]))


@told_as("WAIT004", "memory: 900Gi wanted")
async def no_device_is_large_enough(world: ClusterWorld) -> None:
    await wish(world, wanted(capacity={"requests": {"memory": "900Gi"}}))


@told_as("WAIT005", "dragoon.dev/xid")
async def every_device_is_tainted(world: ClusterWorld) -> None:
    def edit(spec: Any) -> None:
        for device in spec["devices"]:
            device["taints"] = [{"key": "dragoon.dev/xid", "effect": "NoSchedule"}]

    await on_every_node(world, edit)


@told_as("WAIT006", "held by claim default/")
async def every_device_is_in_use(world: ClusterWorld) -> None:
    for node in (NODE, "n2"):
        for number in range(8):
            if (node, number) != (NODE, 0):
                name = await world.device(number, node)
                await world.claim(f"c-{node}-{number}", name, node=node)


@told_as("WAIT007", "left, the rest held by claim default/half")
async def too_little_of_a_share_is_left(world: ClusterWorld) -> None:
    def edit(spec: Any) -> None:
        spec["devices"] = spec["devices"][1:2]
        spec["devices"][0]["allowMultipleAllocations"] = True

    await on_every_node(world, edit)
    for node in (NODE, "n2"):
        part = {"shareID": _SHARE, "consumedCapacity": {"memory": "40Gi"}}
        await world.claim(f"half-{node}", await world.device(0, node), node=node, part=part)
    await wish(world, wanted(capacity={"requests": {"memory": "60Gi"}}))


@told_as("WAIT008", "counter gpu of card")
async def the_card_is_in_use_in_another_form(world: ClusterWorld) -> None:
    counters = {"counters": {"gpu": {"value": "1"}}}
    takes = [{"counterSet": "card", **counters}]

    for node in (NODE, "n2"):
        (slice_,) = await world.slices(node)
        spec = slice_["spec"]
        pool = spec["pool"] | {"resourceSliceCount": 2}
        first, second = spec["devices"][:2]
        slice_["spec"] |= {
            "pool": pool,
            "devices": [first | {"consumesCounters": takes}, second | {"consumesCounters": takes}],
        }
        await world.api.replace(SLICES, slice_)
        await _counters(world, node, pool, {"name": "card", **counters})
        await world.claim(f"other-form-{node}", first["name"], node=node)


async def _counters(world: ClusterWorld, node: str, pool: Object, counters: Object) -> None:
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "sharedCounters": [counters]}
    await world.api.create(SLICES, {"metadata": {"name": f"counters-{node}"}, "spec": spec})


@told_as("WAIT009", "the same")
async def no_two_devices_agree(world: ClusterWorld) -> None:
    uuid = [{"requests": ["gpu"], "matchAttribute": f"{DRIVER}/uuid"}]
    await wish(world, wanted(count=2), constraints=uuid)


@told_as("WAIT010", "not all of them together")
async def two_requests_compete(world: ClusterWorld) -> None:
    five = wanted(count=5)
    await wish(world, five, {**five, "name": "more"})


@told_as("WAIT011", "there are 8 in the pools")
async def a_node_has_fewer(world: ClusterWorld) -> None:
    await wish(world, wanted(count=9))


@told_as("WAIT012", "no node can be used")
async def the_pod_may_run_nowhere(world: ClusterWorld) -> None:
    for node in (NODE, "n2"):
        taints = {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}
        await world.api.patch(NODES, node, {"spec": taints})


@told_as("WAIT013", "claim default/wants is not there")
async def the_claim_is_not_there(world: ClusterWorld) -> None:
    await world.api.delete(CLAIMS, "wants", namespace="default")


@told_as("WAIT014", "count")
async def the_claim_is_wrong(world: ClusterWorld) -> None:
    await wish(world, wanted(count=2, allocationMode="All"))


@told_as("WAIT015", "")
async def the_slices_are_half_there(world: ClusterWorld) -> None:
    def edit(spec: Any) -> None:
        spec["pool"]["resourceSliceCount"] = 2

    await on_every_node(world, edit)


@told_as("WAIT016", "does not allocate by derivedAttributes")
async def the_claim_uses_what_dragoon_does_not_evaluate(world: ClusterWorld) -> None:
    await wish(world, wanted(derivedAttributes=[{"name": "x"}]))


@told_as("WAIT017", "past kube-scheduler")
async def the_pod_was_bound_by_somebody_else(world: ClusterWorld) -> None:
    await world.api.patch(PODS, "p", {"spec": {"nodeName": NODE}}, namespace="default")


async def members(world: ClusterWorld, there: int, size: int, count: int) -> Explained:
    """A gang of that size, of which some pods are there; each wants so many GPUs."""
    world.admission.clear()
    await world.claim("more", await world.device(0, "n2"), node="n2")
    spec = {"devices": {"requests": [wanted(count=count)]}}
    await world.api.create(
        TEMPLATES, {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": spec}}
    )
    await world.api.create(
        GANGS, {"metadata": {"name": "new", "namespace": "default"}, "spec": {"size": size}}
    )
    for number in range(there):
        await world.pod(
            f"new-{number}",
            labels={gang.LABEL: "new"},
            schedulingGates=[{"name": gang.GATE}],
            resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}],
        )
    return explain_gang(await gather(world.api), "default", "new")


@pytest.mark.parametrize(
    ("code", "there", "size", "count"),
    [
        (None, 2, 2, 3),
        ("WAIT018", 1, 2, 3),
        # Of eight GPUs one is in use, on either node.
        ("WAIT019", 1, 1, 8),
        ("WAIT020", 1, 1, 9),
    ],
)
async def test_a_gang_that_waits_is_told_why(
    cluster: ClusterWorld, code: str | None, there: int, size: int, count: int
) -> None:
    found = await members(cluster, there, size, count)
    assert (found.cause.code if found.cause else None) == code, found.message


@pytest.mark.parametrize(("code", "text", "damage"), DAMAGES.rows, ids=DAMAGES.names)
async def test_a_pod_that_waits_is_told_why(
    cluster: ClusterWorld, code: str, text: str, damage: Damage[ClusterWorld]
) -> None:
    await pending(cluster)
    before = await explained(cluster)
    assert (before.state, before.cause) == ("place", None)
    await damage(cluster)
    found = await explained(cluster)
    assert found.cause is not None, found.message
    assert (found.cause.code, text in found.message) == (code, True), found.message
    assert found.cause.remedy


def test_every_reason_has_a_row() -> None:
    assert {code for code, *_ in DAMAGES.rows} | {"WAIT018", "WAIT019", "WAIT020"} == set(REASONS)
