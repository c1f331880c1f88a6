"""What only the in-process server has: history on order, and details of single resources."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from dragoon.errors import ApiGoneError, ApiInvalidError, ApiNotFoundError, ApiUnavailableError
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NODES, PODS, SLICES, Object, PatchKind, Resource, WatchEvent

GANGS = Resource("dragoon.dev", "v1alpha1", "gangs", "Gang", namespaced=True)


def node(name: str, **more: object) -> Object:
    return {"metadata": {"name": name}, **more}


async def next_event(stream: AsyncIterator[WatchEvent]) -> WatchEvent:
    async with asyncio.timeout(60):
        return await anext(stream)


async def test_what_is_handed_out_is_a_copy() -> None:
    api = MemoryApi()
    body = node("n", spec={"taints": []})
    made = await api.create(NODES, body)
    body["spec"]["taints"].append("changed")
    made["spec"]["taints"].append("changed")
    (await api.list(NODES)).items[0]["spec"]["taints"].append("changed")
    assert (await api.get(NODES, "n"))["spec"] == {"taints": []}


async def test_defaults_filled_into_an_update_do_not_leak_into_history() -> None:
    api = MemoryApi()
    made = await api.create(NODES, node("n", spec={"a": {"b": 1}}))
    stream = api.watch(NODES, resource_version=made["metadata"]["resourceVersion"])
    await api.patch(NODES, "n", {"spec": {"a": {"b": 2}}})
    await api.patch(NODES, "n", {"spec": {"a": {"b": 3}}})
    async with contextlib.aclosing(stream):
        seen = [(await next_event(stream)).object["spec"]["a"]["b"] for _ in range(2)]
    assert seen == [2, 3]


async def test_a_watch_older_than_the_history_is_gone() -> None:
    api = MemoryApi(history=5)
    old = (await api.list(NODES)).resource_version
    for number in range(20):
        await api.create(NODES, node(f"n{number}"))
    with pytest.raises(ApiGoneError) as caught:
        await next_event(api.watch(NODES, resource_version=old))
    assert caught.value.status == 410


async def test_the_last_changes_stay_watchable() -> None:
    api = MemoryApi(history=5)
    versions = []
    for number in range(20):
        made = await api.create(NODES, node(f"n{number}"))
        versions.append(made["metadata"]["resourceVersion"])
    async with contextlib.aclosing(api.watch(NODES, resource_version=versions[14])) as stream:
        seen = [(await next_event(stream)).object["metadata"]["name"] for _ in range(5)]
    assert seen == ["n15", "n16", "n17", "n18", "n19"]


async def test_compaction_spares_a_watch_that_has_seen_everything() -> None:
    api = MemoryApi()
    await api.create(NODES, node("n"))
    current = api.resource_version
    stream = api.watch(NODES, resource_version=current)
    waiting = asyncio.create_task(next_event(stream))
    await asyncio.sleep(0)
    await api.create(PODS, {"metadata": {"name": "p", "namespace": "default"}})
    await asyncio.sleep(0)
    api.compact()
    await api.create(NODES, node("m"))
    assert (await waiting).object["metadata"]["name"] == "m"
    await stream.aclose()
    with pytest.raises(ApiGoneError):
        await next_event(api.watch(NODES, resource_version=current))


async def test_a_watch_from_the_future_cannot_go_on() -> None:
    with pytest.raises(ApiGoneError):
        await next_event(MemoryApi().watch(NODES, resource_version="99"))


async def test_a_watch_without_a_version_starts_with_what_is_there() -> None:
    api = MemoryApi()
    await api.create(NODES, node("n"))
    async with contextlib.aclosing(api.watch(NODES, resource_version="0")) as stream:
        first = await next_event(stream)
    assert (first.kind, first.object["metadata"]["name"]) == ("ADDED", "n")
    with pytest.raises(ApiInvalidError):
        await next_event(api.watch(NODES, resource_version="abc"))


async def test_bookmarks_come_on_order_and_when_nothing_happens() -> None:
    api = MemoryApi(bookmark_interval=0.001)
    async with contextlib.aclosing(api.watch(NODES, resource_version="1")) as stream:
        assert (await next_event(stream)).kind == "BOOKMARK"
    api = MemoryApi()
    async with contextlib.aclosing(api.watch(NODES, resource_version="1")) as stream:
        waiting = asyncio.create_task(next_event(stream))
        await asyncio.sleep(0)
        await api.create(PODS, {"metadata": {"name": "p", "namespace": "default"}})
        api.bookmark()
        event = await waiting
    assert event.kind == "BOOKMARK"
    assert event.object["metadata"]["resourceVersion"] == api.resource_version


async def test_cut_watches_fail_and_ended_watches_end() -> None:
    api = MemoryApi()
    cut, ended = (api.watch(NODES, resource_version="1") for _ in range(2))
    waiting = asyncio.create_task(next_event(cut))
    await asyncio.sleep(0)
    api.faults.cut_watches()
    with pytest.raises(ApiUnavailableError):
        await waiting
    waiting = asyncio.create_task(next_event(ended))
    await asyncio.sleep(0)
    api.faults.end_watches()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_pods_start_pending_and_their_status_is_written_apart() -> None:
    api = MemoryApi()
    pod = {"metadata": {"name": "p", "namespace": "a"}, "spec": {"nodeName": "n"}}
    made = await api.create(PODS, {**pod, "status": {"phase": "Running"}})
    assert made["status"] == {"phase": "Pending"}
    patch = {"status": {"phase": "Running"}, "spec": {"nodeName": "m"}}
    stored = await api.patch(PODS, "p", patch, namespace="a", subresource="status")
    assert (stored["status"]["phase"], stored["spec"]["nodeName"]) == ("Running", "n")
    here = await api.list(PODS, fields={"spec.nodeName": "n"})
    assert len(here.items) == 1


async def test_a_node_registers_with_its_status() -> None:
    made = await MemoryApi().create(NODES, node("n", status={"allocatable": {"cpu": "1"}}))
    assert made["status"] == {"allocatable": {"cpu": "1"}}


async def test_an_unknown_subresource_is_not_found() -> None:
    api = MemoryApi()
    await api.create(NODES, node("n"))
    with pytest.raises(ApiNotFoundError, match="scale"):
        await api.patch(NODES, "n", {}, subresource="scale")


async def test_a_custom_resource_is_served_with_status_and_generation() -> None:
    api = MemoryApi()
    made = await api.create(GANGS, {"metadata": {"name": "g", "namespace": "a"}, "spec": {"n": 1}})
    stored = await api.patch(GANGS, "g", {"spec": {"n": 2}, "status": {"x": 1}}, namespace="a")
    assert (made["metadata"]["generation"], stored["metadata"]["generation"]) == (1, 2)
    assert "status" not in stored
    without = {"metadata": {"name": "g", "namespace": "a"}, "spec": {"n": 3}}
    with pytest.raises(ApiInvalidError, match="resourceVersion"):
        await api.replace(GANGS, without)


async def test_a_validator_makes_a_write_invalid_and_nothing_is_stored() -> None:
    def findings(found: Object) -> list[str]:
        return [] if found.get("spec", {}).get("ok") else ["spec.ok: Required value"]

    api = MemoryApi(validators={NODES: findings})
    with pytest.raises(ApiInvalidError, match=r"spec\.ok: Required value"):
        await api.create(NODES, node("n"))
    assert (await api.list(NODES)).items == ()
    await api.create(NODES, node("n", spec={"ok": True}))
    with pytest.raises(ApiInvalidError):
        await api.patch(NODES, "n", {"spec": {"ok": None}})
    assert (await api.get(NODES, "n"))["spec"] == {"ok": True}


async def test_a_slice_that_breaks_the_apis_rules_is_invalid() -> None:
    spec = {
        "driver": "gpu.dragoon.dev",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "GPU-0"}],
    }
    with pytest.raises(ApiInvalidError, match=r"devices\[0\]\.name"):
        await MemoryApi().create(SLICES, {"metadata": {"name": "s"}, "spec": spec})


async def test_apply_needs_version_and_kind_and_an_object_for_a_subresource() -> None:
    api = MemoryApi()
    with pytest.raises(ApiInvalidError, match="apiVersion"):
        await api.patch(NODES, "n", {}, kind=PatchKind.APPLY, field_manager="m")
    config = {"apiVersion": "v1", "kind": "Node", "status": {}}
    with pytest.raises(ApiNotFoundError):
        await api.patch(
            NODES, "n", config, kind=PatchKind.APPLY, field_manager="m", subresource="status"
        )
