"""The rules of resource.k8s.io that Dragoon builds on."""

import pytest

from dragoon.errors import ApiInvalidError
from dragoon.kube.port import CLAIMS, SLICES, Object, PatchKind
from tests.contract.kube.servers import Server

DEVICE = {"driver": "gpu.dragoon.dev", "pool": "n", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [{"request": "g", **DEVICE}]}}
# No pod: a cluster's claim controller takes the reservations of pods that are not there away.
CONSUMER = {"apiGroup": "dragoon.dev", "resource": "contracts", "name": "p", "uid": "u1"}


async def status(server: Server, patch: Object, kind: PatchKind = PatchKind.MERGE) -> Object:
    return await server.api.patch(
        CLAIMS,
        "one",
        {"status": patch},
        kind=kind,
        namespace=server.namespace,
        subresource="status",
    )


async def test_a_claims_spec_never_changes(server: Server) -> None:
    made = await server.claim("one")
    made["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    with pytest.raises(ApiInvalidError, match="spec"):
        await server.api.replace(CLAIMS, made)


async def test_status_and_the_rest_are_written_apart(server: Server) -> None:
    made = await server.claim("one")
    assert "allocation" not in made.get("status", {})
    made["status"] = {"allocation": ALLOCATION}
    made["metadata"]["labels"] = {"a": "b"}
    rest = await server.api.replace(CLAIMS, made)
    assert rest["metadata"]["labels"] == {"a": "b"}
    assert not rest.get("status")
    rest["status"] = {"allocation": ALLOCATION}
    rest["metadata"]["labels"] = {"a": "changed"}
    stored = await server.api.replace(CLAIMS, rest, subresource="status")
    assert stored["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    assert stored["metadata"]["labels"] == {"a": "b"}


async def test_an_allocation_is_set_and_cleared_but_never_changed(server: Server) -> None:
    await server.claim("one")
    await status(server, {"allocation": ALLOCATION})
    other = {"devices": {"results": [{"request": "g", **DEVICE, "device": "gpu-1"}]}}
    with pytest.raises(ApiInvalidError, match=r"status\.allocation"):
        await status(server, {"allocation": other})
    await status(server, {"allocation": None})
    stored = await status(server, {"allocation": other})
    assert stored["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-1"


async def test_consumers_need_an_allocation(server: Server) -> None:
    await server.claim("one")
    with pytest.raises(ApiInvalidError, match="reservedFor"):
        await status(server, {"reservedFor": [CONSUMER]})
    await status(server, {"allocation": ALLOCATION, "reservedFor": [CONSUMER]})
    with pytest.raises(ApiInvalidError, match="reservedFor"):
        await status(server, {"allocation": None})
    stored = await status(server, {"allocation": None, "reservedFor": None})
    assert "allocation" not in stored.get("status", {})


async def test_a_strategic_patch_adds_a_consumer_beside_the_others(server: Server) -> None:
    await server.claim("one")
    await status(server, {"allocation": ALLOCATION, "reservedFor": [CONSUMER]})
    second = {**CONSUMER, "name": "q", "uid": "u2"}
    stored = await status(server, {"reservedFor": [second]}, PatchKind.STRATEGIC)
    assert {each["uid"] for each in stored["status"]["reservedFor"]} == {"u1", "u2"}


async def test_device_status_belongs_to_an_allocated_device(server: Server) -> None:
    await server.claim("one")
    with pytest.raises(ApiInvalidError, match="devices"):
        await status(server, {"devices": [DEVICE]})
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "DeviceLost",
        "message": "",
        "lastTransitionTime": "2026-11-29T10:00:00Z",
    }
    entry = {**DEVICE, "conditions": [condition]}
    stored = await status(server, {"allocation": ALLOCATION, "devices": [entry]})
    assert stored["status"]["devices"][0]["conditions"][0]["reason"] == "DeviceLost"
    cleared = await status(server, {"allocation": None})
    assert not cleared.get("status", {}).get("devices")


async def test_two_appliers_of_device_status_do_not_undo_each_other(server: Server) -> None:
    await server.claim("one")
    results = [{"request": "g", **DEVICE}, {"request": "g", **DEVICE, "device": "gpu-1"}]
    await status(server, {"allocation": {"devices": {"results": results}}})

    async def apply(manager: str, device: str) -> Object:
        entry = {**DEVICE, "device": device, "data": {"by": manager}}
        config = {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {"name": "one"},
            "status": {"devices": [entry]},
        }
        return await server.api.patch(
            CLAIMS,
            "one",
            config,
            kind=PatchKind.APPLY,
            namespace=server.namespace,
            subresource="status",
            field_manager=manager,
        )

    await apply("first", "gpu-0")
    both = await apply("second", "gpu-1")
    assert {each["device"] for each in both["status"]["devices"]} == {"gpu-0", "gpu-1"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("driver",), "other.dragoon.dev"),
        (("nodeName",), "elsewhere"),
        (("pool", "name"), "elsewhere"),
    ],
)
async def test_a_slice_stays_with_its_driver_pool_and_node(
    server: Server, path: tuple[str, ...], value: str
) -> None:
    made = await server.slice("a")
    *parents, last = path
    place = made["spec"]
    for part in parents:
        place = place[part]
    place[last] = value
    with pytest.raises(ApiInvalidError, match=last):
        await server.api.replace(SLICES, made)


async def test_a_slices_generation_counts_changes_of_its_spec_only(server: Server) -> None:
    made = await server.slice("a")
    name = made["metadata"]["name"]
    assert made["metadata"]["generation"] == 1
    labelled = await server.api.patch(SLICES, name, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    changed = await server.api.patch(SLICES, name, {"spec": {"pool": {"generation": 2}}})
    assert changed["metadata"]["generation"] == 2


def taints(slice_: Object) -> list[Object]:
    device = slice_["spec"]["devices"][0]
    if "taints" not in device:
        pytest.skip("this server drops taints: DRADeviceTaints is off before 1.36")
    return list(device["taints"])


async def test_a_taint_gets_its_time_from_the_server(server: Server) -> None:
    taint = {"key": "dragoon.dev/lost", "effect": "NoSchedule"}
    made = await server.slice("a", devices=[{"name": "gpu-0", "taints": [taint]}])
    assert taints(made)[0]["timeAdded"].endswith("Z")


async def test_a_dry_run_answers_like_a_create_and_stores_nothing(server: Server) -> None:
    taint = {"key": "dragoon.dev/lost", "effect": "NoSchedule"}
    body = {
        "metadata": {"generateName": f"node-{server.unique}-"},
        "spec": {
            "driver": "gpu.dragoon.dev",
            "nodeName": f"node-{server.unique}",
            "pool": {"name": server.unique, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "taints": [taint]}],
        },
    }
    answer = await server.api.create(SLICES, body, dry_run=True)
    listing = await server.api.list(SLICES, fields={"spec.nodeName": f"node-{server.unique}"})
    assert listing.items == ()
    assert taints(answer)[0]["timeAdded"]


async def test_a_slice_that_breaks_the_rules_is_refused(server: Server) -> None:
    bad = [{"name": "GPU-0", "attributes": {"index": {"string": "a", "int": 1}}}]
    with pytest.raises(ApiInvalidError, match=r"devices\[0\]") as refused:
        await server.slice("bad", devices=bad)
    assert refused.value.status == 422
