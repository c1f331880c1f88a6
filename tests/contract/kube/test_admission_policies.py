"""The policies of deploy/ on a real API server: slices, opaque configs, visible devices."""

import os

import pytest

from dragoon.errors import ApiForbiddenError, ApiInvalidError, DragoonError
from dragoon.kube.port import (
    CLAIMS,
    CLASSES,
    NAMESPACES,
    PODS,
    SLICES,
    TEMPLATES,
    Object,
    PatchKind,
)
from tests.contract.kube.policies import Place, voided
from tests.contract.kube.servers import REAL
from tests.contract.kube.waiting import becomes

pytestmark = pytest.mark.e2e

if REAL not in os.environ:
    pytest.skip(f"{REAL} is not set", allow_module_level=True)


async def test_a_plugin_writes_slices_of_its_own_node_and_driver_only(place: Place) -> None:
    own = await place.plugin(place.node("a"))
    made = await own.create(SLICES, place.slice("a"))
    place.server.made.append((SLICES, made["metadata"]["name"]))
    with pytest.raises((ApiForbiddenError, ApiInvalidError), match=r"allowed is the node of the"):
        await own.create(SLICES, place.slice("b"))
    with pytest.raises((ApiForbiddenError, ApiInvalidError), match=r"spec\.driver"):
        await own.create(SLICES, place.slice("a", "other.example.com"))
    everywhere = place.slice("a")
    del everywhere["spec"]["nodeName"]
    everywhere["spec"]["allNodes"] = True
    with pytest.raises((ApiForbiddenError, ApiInvalidError), match=r"spec\.nodeName: found ''"):
        await own.create(SLICES, everywhere)

    other = await place.plugin(place.node("b"))
    with pytest.raises((ApiForbiddenError, ApiInvalidError)):
        await other.delete(SLICES, made["metadata"]["name"])
    with pytest.raises((ApiForbiddenError, ApiInvalidError)):
        await other.replace(
            SLICES, {**made, "metadata": {**made["metadata"], "labels": {"x": "y"}}}
        )
    unbound = await place.plugin(None)
    with pytest.raises((ApiForbiddenError, ApiInvalidError), match="names no node"):
        await unbound.create(SLICES, place.slice("a"))
    await own.delete(SLICES, made["metadata"]["name"])


WRONG = {
    "version": ({"kind": "GpuConfig"}, "apiVersion: allowed is"),
    "kind": ({"kind": "GpuConfg"}, "kind: allowed are GpuConfig"),
    "field": ({"kind": "SharedGpuConfig", "teir": "hami"}, "the fields tier and priority only"),
    "value": ({"kind": "GpuConfig", "timeSlice": "Fast"}, "timeSlice: allowed are Default"),
    "tier": ({"kind": "SharedGpuConfig", "tier": "mps"}, "tier: allowed are cgroup"),
    "priority": ({"kind": "SharedGpuConfig", "priority": "Top"}, "priority: allowed are High"),
    "mig": ({"kind": "MigConfig", "profile": "1g"}, "a MigConfig has no fields"),
    "nothing": ({}, "allowed"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_mistakes_in_configs_arerefused_when_they_are_written(
    place: Place, wrong: str
) -> None:
    parameters, told = WRONG[wrong]
    version = {} if wrong in {"version", "nothing"} else {"apiVersion": f"{place.driver}/v1alpha1"}
    claim = place.claim({**version, **parameters})
    template = {
        "apiVersion": TEMPLATES.api_version,
        "kind": TEMPLATES.kind,
        "metadata": claim["metadata"],
        "spec": {"spec": claim["spec"]},
    }
    device_class = {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.kind,
        "metadata": {"name": claim["metadata"]["name"]},
        "spec": {"config": claim["spec"]["devices"]["config"]},
    }
    for resource, body in ((CLAIMS, claim), (TEMPLATES, template), (CLASSES, device_class)):
        with pytest.raises((ApiForbiddenError, ApiInvalidError), match=told):
            await place.api.create(resource, body, dry_run=True)


async def test_right_configs_and_those_of_others_pass(place: Place) -> None:
    version = f"{place.driver}/v1alpha1"
    for parameters in (
        {"apiVersion": version, "kind": "GpuConfig", "timeSlice": "Short"},
        {"apiVersion": version, "kind": "SharedGpuConfig", "tier": "hami", "priority": "Low"},
        {"apiVersion": version, "kind": "MigConfig"},
    ):
        await place.api.create(CLAIMS, place.claim(parameters), dry_run=True)
    foreign = place.claim({"anything": 1})
    foreign["spec"]["devices"]["config"][0]["opaque"]["driver"] = "nic.example.com"
    await place.api.create(CLAIMS, foreign, dry_run=True)


async def test_gpus_are_visible_in_no_container_without_a_claim(place: Place) -> None:
    asks = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    void = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
    pod = place.pod(
        {"name": "asks", "image": "i", "env": [{"name": "A", "value": "b"}, asks]},
        {"name": "silent", "image": "i"},
        {"name": "claims", "image": "i", "resources": {"claims": [{"name": "gpu"}]}},
        {
            "name": "old",
            "image": "i",
            "env": [asks],
            "resources": {"limits": {"nvidia.com/gpu": 1}},
        },
        initContainers=[{"name": "first", "image": "i", "env": [asks]}],
        resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}],
    )
    made = await place.api.create(PODS, pod, dry_run=True)
    found = made["spec"]["containers"] + made["spec"]["initContainers"]
    env = {one["name"]: one.get("env", []) for one in found}
    assert env == {
        "asks": [{"name": "A", "value": "b"}, void],
        "silent": [void],
        "claims": [void],
        "old": [asks],
        "first": [void],
    }


async def test_no_claim_and_no_count_of_nothing_makes_gpus_visible(place: Place) -> None:
    """Ways around that a user has: a claim of no device, 0 of a resource, the variable elsewhere."""
    asks = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    nothing = {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": "nothing", "namespace": place.server.namespace},
        "spec": {},
    }
    await place.api.create(CLAIMS, nothing)
    pod = place.pod(
        {
            "name": "empty-claim",
            "image": "i",
            "env": [asks],
            "resources": {"claims": [{"name": "nothing"}]},
        },
        {
            "name": "zero",
            "image": "i",
            "env": [asks],
            "resources": {"limits": {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": "0"}},
        },
        {"name": "map", "image": "i", "envFrom": [{"configMapRef": {"name": "all"}}]},
        resourceClaims=[{"name": "nothing", "resourceClaimName": "nothing"}],
    )
    made = await place.api.create(PODS, pod, dry_run=True)
    seen = {
        one["name"]: [env["value"] for env in one["env"] if env["name"] == asks["name"]]
        for one in made["spec"]["containers"]
    }
    assert seen == {"empty-claim": ["void"], "zero": ["void"], "map": ["void"]}


@pytest.mark.parametrize(
    "env",
    [
        [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}] * 2,
        [
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
        ],
        [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
        [
            {
                "name": "NVIDIA_VISIBLE_DEVICES",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['all']"}},
            }
        ],
    ],
    ids=["twice", "void at first", "from nowhere", "from an annotation"],
)
async def test_a_variable_that_cannot_be_set_isrefused(place: Place, env: list[Object]) -> None:
    pod = place.pod({"name": "c", "image": "i", "env": env})
    try:
        made = await place.api.create(PODS, pod, dry_run=True)
    except DragoonError:
        return
    (container,) = made["spec"]["containers"]
    assert {one.get("value") for one in container["env"]} == {"void"}


async def test_gpus_are_visible_in_no_container_that_is_added_later(place: Place) -> None:
    asks = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}

    async def in_force() -> bool:
        # It is a policy of its own, the last that was written: seen after those of `place`.
        return await added(place, asks, "probe") != {"probe": [asks]}

    await becomes("the policy for containers that are added is in force", in_force)
    void = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
    assert await added(place, asks, "first", "second") == {"first": [void], "second": [void]}


async def added(place: Place, variable: Object, *names: str) -> dict[str, list[Object]]:
    """The variables of containers that ask for this one, added to a pod one after another."""
    pod = await place.api.create(PODS, place.pod({"name": "c", "image": "i"}))
    for name in names:
        container = {"name": name, "image": "i", "env": [variable]}
        pod = await place.api.patch(
            PODS,
            pod["metadata"]["name"],
            {"spec": {"ephemeralContainers": [container]}},
            kind=PatchKind.STRATEGIC,
            namespace=place.server.namespace,
            subresource="ephemeralcontainers",
        )
    return {one["name"]: one["env"] for one in pod["spec"]["ephemeralContainers"]}


async def test_a_namespace_can_be_left_alone(place: Place) -> None:
    label = {"metadata": {"labels": {"dragoon.dev/visible-devices": "unmanaged"}}}
    await place.api.patch(NAMESPACES, place.server.namespace, label, kind=PatchKind.MERGE)

    async def left_alone() -> bool:
        return not await voided(place)

    await becomes("the policy leaves the namespace alone", left_alone)
