"""Lists, selectors and watches: what every server answers alike."""

import asyncio
import contextlib
from typing import Any

import pytest

from dragoon.errors import ApiInvalidError
from dragoon.kube.port import CLAIMS, CLASSES, SLICES, Listing, Resource, WatchEvent
from testbed.waiting import PATIENCE
from tests.contract.kube.servers import Server


def names(listing: Listing) -> set[str]:
    return {each["metadata"]["name"] for each in listing.items}


async def events(server: Server, resource: Resource, count: int, **scope: Any) -> list[WatchEvent]:
    """The next `count` events of a watch, bookmarks left out."""
    found = []
    async with (
        asyncio.timeout(PATIENCE),
        contextlib.aclosing(server.api.watch(resource, **scope)) as s,
    ):
        async for event in s:
            if event.kind != "BOOKMARK":
                found.append(event)
            if len(found) == count:
                return found
    return found


async def test_a_list_is_what_a_watch_continues(server: Server) -> None:
    await server.claim("one")
    listing = await server.api.list(CLAIMS, namespace=server.namespace)
    assert names(listing) == {"one"}
    await server.claim("two")
    await server.api.patch(
        CLAIMS, "two", {"metadata": {"labels": {"a": "b"}}}, namespace=server.namespace
    )
    await server.api.delete(CLAIMS, "one", namespace=server.namespace)
    seen = await events(
        server,
        CLAIMS,
        3,
        namespace=server.namespace,
        resource_version=listing.resource_version,
    )
    assert [(e.kind, e.object["metadata"]["name"]) for e in seen] == [
        ("ADDED", "two"),
        ("MODIFIED", "two"),
        ("DELETED", "one"),
    ]
    versions = [int(e.object["metadata"]["resourceVersion"]) for e in seen]
    assert versions == sorted(versions)
    assert versions[0] > int(listing.resource_version)


async def test_listed_and_watched_objects_are_equal_to_what_get_reads(server: Server) -> None:
    before = await server.api.list(CLAIMS, namespace=server.namespace)
    made = await server.claim("one")
    listing = await server.api.list(CLAIMS, namespace=server.namespace)
    (watched,) = await events(
        server,
        CLAIMS,
        1,
        namespace=server.namespace,
        resource_version=before.resource_version,
    )
    assert listing.items == (made,)
    assert watched.object == made


async def test_a_watch_delivers_what_happens_while_it_is_open(server: Server) -> None:
    listing = await server.api.list(CLAIMS, namespace=server.namespace)
    waiting = asyncio.create_task(
        events(
            server,
            CLAIMS,
            2,
            namespace=server.namespace,
            resource_version=listing.resource_version,
        )
    )
    await server.claim("one")
    await server.api.delete(CLAIMS, "one", namespace=server.namespace)
    assert [e.kind for e in await waiting] == ["ADDED", "DELETED"]


async def test_a_namespace_limits_a_list_and_none_means_all(server: Server) -> None:
    await server.claim("one")
    everywhere = await server.api.list(CLAIMS)
    assert server.namespace in {each["metadata"]["namespace"] for each in everywhere.items}
    elsewhere = await server.api.list(CLAIMS, namespace=f"{server.namespace}-other")
    assert elsewhere.items == ()


async def test_slices_are_selected_by_node_driver_and_name(server: Server) -> None:
    await server.slice("a")
    await server.slice("b")
    node = f"node-{server.unique}"
    by_node = await server.api.list(SLICES, fields={"spec.nodeName": node})
    assert names(by_node) == {f"{node}-a", f"{node}-b"}
    both = {"spec.nodeName": node, "spec.driver": "gpu.dragoon.dev"}
    assert names(await server.api.list(SLICES, fields=both)) == {f"{node}-a", f"{node}-b"}
    other = {**both, "spec.driver": "other.dragoon.dev"}
    assert names(await server.api.list(SLICES, fields=other)) == set()
    one = await server.api.list(SLICES, fields={"metadata.name": f"{node}-b"})
    assert names(one) == {f"{node}-b"}


async def test_a_field_that_is_not_selectable_is_invalid(server: Server) -> None:
    with pytest.raises(ApiInvalidError) as caught:
        await server.api.list(SLICES, fields={"spec.devices": "x"})
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("kind=fast", {"a"}),
        ("kind==fast", {"a"}),
        ("kind!=fast", {"b", "c"}),
        ("kind", {"a", "b"}),
        ("!kind", {"c"}),
        ("kind in (fast, slow)", {"a", "b"}),
        ("kind notin (fast)", {"b", "c"}),
        ("kind,kind!=slow", {"a"}),
    ],
)
async def test_classes_are_selected_by_labels(
    server: Server, selector: str, expected: set[str]
) -> None:
    own = {"own": server.unique}
    await server.device_class("a", labels={**own, "kind": "fast"})
    await server.device_class("b", labels={**own, "kind": "slow"})
    await server.device_class("c", labels=own)
    listing = await server.api.list(CLASSES, labels=f"own={server.unique},{selector}")
    assert names(listing) == {f"class-{server.unique}-{suffix}" for suffix in expected}


async def test_a_watch_with_a_selector_sees_objects_come_and_go(server: Server) -> None:
    labels = f"own={server.unique}"
    listing = await server.api.list(CLASSES, labels=labels)
    made = await server.device_class("a")
    name = made["metadata"]["name"]
    for value in (server.unique, server.unique, "other"):
        patch = {"metadata": {"labels": {"own": value, "n": value}}}
        if value == "other":
            await server.api.patch(CLASSES, name, {"metadata": {"labels": {"more": "1"}}})
        await server.api.patch(CLASSES, name, patch)
    seen = await events(
        server, CLASSES, 3, labels=labels, resource_version=listing.resource_version
    )
    assert [e.kind for e in seen] == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_list_in_pages_is_of_one_moment(server: Server) -> None:
    for index in range(5):
        await server.claim(f"c{index}")
    pages = server.api.pages(CLAIMS, size=2, namespace=server.namespace)
    found: list[Listing] = []
    async with contextlib.aclosing(pages):
        async for page in pages:
            if not found:
                # What comes after the first page was asked for is not in any.
                await server.claim("late")
            found.append(page)
    assert [len(page.items) for page in found] == [2, 2, 1]
    assert [names(page) for page in found] == [{"c0", "c1"}, {"c2", "c3"}, {"c4"}]
    assert len({page.resource_version for page in found}) == 1
    assert all(each["kind"] == "ResourceClaim" for page in found for each in page.items)


async def test_nothing_is_one_page(server: Server) -> None:
    pages = [page async for page in server.api.pages(CLAIMS, size=2, namespace=server.namespace)]
    assert [page.items for page in pages] == [()]
    assert pages[0].resource_version
