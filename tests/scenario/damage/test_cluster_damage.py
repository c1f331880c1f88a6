"""Kinds of damage to a cluster, each found by `dragoon check` with its code."""

from typing import Any

import pytest

from dragoon.api import gang
from dragoon.api.names import LABEL_GANG_UID
from dragoon.diagnose.checking import Report, run
from dragoon.diagnose.installed import COMPONENT, PLUGIN
from dragoon.errors import ApiForbiddenError, ApiNotFoundError
from dragoon.kube.port import CLAIMS, CLASSES, GANGS, NODES, PODS, SLICES, TAINT_RULES
from tests.scenario.damage.cluster_world import DRIVER, HOME, NODE, ClusterWorld
from tests.scenario.damage.damages import Damage, Damages, assert_told, codes

DAMAGES: Damages[ClusterWorld] = Damages()
"""The code, what the finding is about, and the damage."""
found_by = DAMAGES.row


async def report(world: ClusterWorld) -> Report:
    return run(await world.evidence(), ("runtime", "api", "state", "gang"))


@found_by("API001", "Kubernetes")
async def kubernetes_is_too_old(world: ClusterWorld) -> None:
    world.api.git_version = "v1.34.2"


@found_by("API002", "Kubernetes")
async def kubernetes_gives_counters_twice(world: ClusterWorld) -> None:
    world.api.git_version = "v1.36.1"


@found_by("API003", "deviceclasses.resource.k8s.io/v1")
async def dynamic_resource_allocation_is_off(world: ClusterWorld) -> None:
    world.api.faults.fail(
        times=None, resource=CLASSES, error=lambda: ApiNotFoundError("no such resource", status=404)
    )


@found_by("API004", "taints")
async def the_gate_of_device_taints_is_off(world: ClusterWorld) -> None:
    world.api.faults.drop(SLICES, "spec", "devices", "*", "taints")


@found_by("API004", "forms")
async def the_gate_of_shared_devices_is_off(world: ClusterWorld) -> None:
    world.api.faults.drop(SLICES, "spec", "devices", "*", "allowMultipleAllocations")


@found_by("API005", "DeviceClass sim.dragoon.dev")
async def a_device_class_was_deleted(world: ClusterWorld) -> None:
    await world.api.delete(CLASSES, "sim.dragoon.dev")


@found_by("API006", f"ServiceAccount {HOME}/plugin")
async def a_binding_was_deleted(world: ClusterWorld) -> None:
    world.api.policy = [
        one
        for one in world.api.policy
        if (one["kind"], one["metadata"]["name"]) != ("ClusterRoleBinding", f"{DRIVER}:plugin")
    ]


@found_by("API006", f"ServiceAccount {HOME}/controller")
async def a_role_lost_one_verb(world: ClusterWorld) -> None:
    for role in world.api.policy:
        for rule in role.get("rules", ()):
            if rule["resources"] == [TAINT_RULES.plural]:
                rule["verbs"].remove("create")


@found_by("API007", f"pod {HOME}/plugin-{NODE}")
async def a_plugin_is_not_ready(world: ClusterWorld) -> None:
    status = {"conditions": [{"type": "Ready", "status": "False"}]}
    await world.api.patch(
        PODS, f"plugin-{NODE}", {"status": status}, namespace=HOME, subresource="status"
    )


@found_by("API008", f"node {NODE}")
async def the_slices_of_a_node_are_gone(world: ClusterWorld) -> None:
    for one in await world.slices():
        await world.api.delete(SLICES, one["metadata"]["name"])


@found_by("API013", "the plugin")
async def nobody_was_allowed_to_run_a_plugin(world: ClusterWorld) -> None:
    """As where Pod Security refuses the DaemonSet's pods."""
    for one in (await world.api.list(SLICES)).items:
        await world.api.delete(SLICES, one["metadata"]["name"])
    for pod in (await world.api.list(PODS)).items:
        if pod["metadata"].get("labels", {}).get(COMPONENT) == PLUGIN:
            await world.api.delete(
                PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"]
            )


@found_by("API009", f"node {NODE}")
async def a_device_plugin_offers_the_same_cards(world: ClusterWorld) -> None:
    status = {"allocatable": {"nvidia.com/gpu": "8"}}
    await world.api.patch(NODES, NODE, {"status": status}, subresource="status")


@found_by("API009", f"device {NODE}/gpu/")
async def another_driver_publishes_the_same_cards(world: ClusterWorld) -> None:
    await _taint(world, "dragoon.dev/other-owner", "gpu.nvidia.com")


@found_by("API010", f"device {NODE}/gpu/")
async def a_gpu_is_tainted(world: ClusterWorld) -> None:
    await _taint(world, "dragoon.dev/xid", "79")


async def _taint(world: ClusterWorld, key: str, value: str) -> None:
    taint = {"key": key, "value": value, "effect": "NoSchedule"}

    def edit(spec: Any) -> None:
        spec["devices"][0]["taints"] = [taint]

    await world.edit_slice(edit)


@found_by("API011", f"pool {DRIVER}/{NODE}/gpu")
async def a_slice_of_a_pool_is_missing(world: ClusterWorld) -> None:
    def edit(spec: Any) -> None:
        spec["pool"]["resourceSliceCount"] = 2

    await world.edit_slice(edit)


@found_by("API012", "you")
async def the_user_may_not_list_pods(world: ClusterWorld) -> None:
    text = 'pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope'
    world.api.faults.fail(
        times=None,
        verb="list",
        resource=PODS,
        error=lambda: ApiForbiddenError(text, status=403),
    )


@found_by("RUNTIME005", f"node {NODE}")
async def a_runtime_has_no_cdi(world: ClusterWorld) -> None:
    info = {"nodeInfo": {"containerRuntimeVersion": "docker://28.0.1"}}
    await world.api.patch(NODES, NODE, {"status": info}, subresource="status")


@found_by("STATE008", f"{DRIVER}/{NODE}/gpu")
async def a_device_was_given_twice(world: ClusterWorld) -> None:
    await world.claim("too", await world.device(0))


@found_by("STATE009", "claim default/has")
async def the_device_of_a_claim_is_not_published(world: ClusterWorld) -> None:
    def edit(spec: Any) -> None:
        del spec["devices"][0]

    await world.edit_slice(edit)


@found_by("STATE010", "claim default/has")
async def a_node_refuses_a_claim(world: ClusterWorld) -> None:
    claim = await world.api.get(CLAIMS, "has", namespace="default")
    result = claim["status"]["allocation"]["devices"]["results"][0]
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "DeviceLost",
        "message": "it fell off the bus",
        "lastTransitionTime": "2026-11-29T22:00:00Z",
    }
    entry = {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": [ready]}
    claim["status"]["devices"] = [entry]
    await world.api.replace(CLAIMS, claim, subresource="status")


@found_by("GANG001", "MutatingAdmissionPolicy gate.gangs.dragoon.dev")
async def the_gate_policy_is_off(world: ClusterWorld) -> None:
    del world.admission[PODS]


@found_by("GANG002", "MutatingAdmissionPolicy claim-finalizer.gangs.dragoon.dev")
async def the_finalizer_policy_is_off(world: ClusterWorld) -> None:
    del world.admission[CLAIMS]


@found_by("GANG003", "pod default/loose")
async def a_member_came_while_the_gate_was_off(world: ClusterWorld) -> None:
    claim = {
        "metadata": {"name": "wants", "namespace": "default"},
        "spec": {
            "devices": {
                "requests": [{"name": "g", "exactly": {"deviceClassName": "sim.dragoon.dev"}}]
            }
        },
    }
    await world.api.create(CLAIMS, claim)
    policy = world.admission.pop(PODS)
    await world.pod(
        "loose",
        labels={gang.LABEL: "train"},
        resourceClaims=[{"name": "g", "resourceClaimName": "wants"}],
    )
    world.admission[PODS] = policy


@found_by("GANG004", "gang default/train")
async def a_gang_is_stuck(world: ClusterWorld) -> None:
    status = {"phase": "Stuck", "waitingFor": "pod train-0 cannot be bound"}
    await world.api.patch(
        GANGS, "train", {"status": status}, namespace="default", subresource="status"
    )


@found_by("GANG005", "DeviceTaintRule left")
async def a_rule_outlives_its_gang(world: ClusterWorld) -> None:
    await world.api.create(
        TAINT_RULES,
        {
            "metadata": {"name": "left", "labels": {LABEL_GANG_UID: "gone"}},
            "spec": {
                "deviceSelector": {"driver": DRIVER, "pool": f"{NODE}/gpu"},
                "taint": {"key": gang.TAINT, "effect": "NoSchedule"},
            },
        },
    )


@found_by("GANG006", "pod default/held")
async def no_controller_runs(world: ClusterWorld) -> None:
    await world.api.delete(PODS, "controller", namespace=HOME)
    await world.pod("held", labels={gang.LABEL: "other"})


async def test_nothing_is_found_in_a_cluster_that_is_well(cluster: ClusterWorld) -> None:
    found = await report(cluster)
    assert codes(found) == set()
    assert found.is_fine
    of_the_node = {one.check.code for one in found.results if one.skipped}
    assert of_the_node == {
        *(f"RUNTIME00{number}" for number in range(1, 5)),
        *(f"STATE00{number}" for number in range(1, 8)),
    }


async def test_nothing_is_written_but_reviews(cluster: ClusterWorld) -> None:
    before = cluster.api.resource_version
    await report(cluster)
    assert cluster.api.resource_version == before


@pytest.mark.parametrize(("code", "about", "damage"), DAMAGES.rows, ids=DAMAGES.names)
async def test_damage_is_found(
    cluster: ClusterWorld, code: str, about: str, damage: Damage[ClusterWorld]
) -> None:
    assert code not in codes(await report(cluster))
    await damage(cluster)
    assert_told(await report(cluster), code, about)


async def test_no_rule_is_called_left_over_where_gangs_cannot_be_read(
    cluster: ClusterWorld,
) -> None:
    await a_rule_outlives_its_gang(cluster)
    cluster.api.faults.fail(
        error=lambda: ApiForbiddenError("no", status=403), verb="list", resource=GANGS, times=None
    )
    (about_rules,) = (one for one in (await report(cluster)).results if one.check.code == "GANG005")
    assert about_rules.problems == ()
    assert about_rules.skipped


async def test_a_taint_that_is_wanted_is_no_finding(cluster: ClusterWorld) -> None:
    await _taint(cluster, "dragoon.dev/gang-only", "")
    assert codes(await report(cluster)) == set()
