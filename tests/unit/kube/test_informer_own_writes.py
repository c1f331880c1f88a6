"""What a process wrote itself is in its copy at once, whatever the watch has brought so far."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from dragoon.kube.informer import Informer
from dragoon.kube.memory import MemoryApi
from dragoon.kube.mirror import Change
from dragoon.kube.port import NODES, Object, WatchEvent
from tests.unit.kube.informing import Waits, node, running, seen, until


async def test_an_own_write_newer_than_a_list_on_its_way_is_kept() -> None:
    api = MemoryApi()
    informer: Informer[Object] = Informer(api, NODES)
    changes: list[Change[Object]] = []
    informer.subscribe(changes.append)
    listing = api.faults.hold_answer(verb="list")
    async with running(informer):
        await listing.reached.wait()
        written = await api.create(NODES, node("a"))
        informer.observe(written)
        listing.lift()
        await informer.synced()
        assert informer.get("a") == written
        await api.delete(NODES, "a")
        await until(lambda: informer.get("a") is None)
    assert seen(changes) == [("added", "a"), ("deleted", "a")]


async def test_the_news_of_an_own_write_is_not_read_again() -> None:
    api = MemoryApi()
    read: list[str] = []

    def decode(raw: Object) -> Object:
        read.append(raw["metadata"]["name"])
        return raw

    informer: Informer[Object] = Informer(api, NODES, decode=decode)
    async with running(informer):
        await informer.synced()
        informer.observe(await api.create(NODES, node("a")))
        await until(lambda: informer.state.events == 1)
        await api.create(NODES, node("b"))
        await until(lambda: informer.get("b"))
    assert read == ["a", "b"]


async def test_an_own_new_object_outlives_the_news_of_the_old_ones_end() -> None:
    api = MemoryApi()
    await api.create(NODES, node("a"))
    informer: Informer[Object] = Informer(api, NODES)
    changes: list[Change[Object]] = []
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        await api.delete(NODES, "a")
        written = await api.create(NODES, node("a"))
        informer.observe(written)
        await until(lambda: informer.state.events == 2)
    assert informer.get("a") == written
    assert seen(changes) == [("added", "a"), ("deleted", "a"), ("added", "a")]


async def test_c37_an_own_write_is_seen_before_the_watch_shows_it() -> None:
    api = MemoryApi()
    informer: Informer[Object] = Informer(api, NODES, sleep=Waits())
    changes: list[Change[Object]] = []
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        written = await api.create(NODES, node("a"))
        informer.observe(written)
        assert informer.get("a") == written
        await api.create(NODES, node("b"))
        await until(lambda: informer.get("b"))
    assert seen(changes) == [("added", "a"), ("added", "b")]


async def test_c37_an_own_write_that_the_watch_has_overtaken_is_ignored() -> None:
    api = MemoryApi()
    informer: Informer[Object] = Informer(api, NODES)
    async with running(informer):
        await informer.synced()
        written = await api.create(NODES, node("a"))
        await api.delete(NODES, "a")
        await until(lambda: informer.state.events == 2)
        informer.observe(written)
        assert informer.get("a") is None


async def test_a_refresh_shows_what_no_watch_has_brought_yet() -> None:
    api = MemoryApi()
    await api.create(NODES, {"metadata": {"name": "old"}})
    informer: Informer[Object] = Informer(api, NODES)
    changes: list[Change[Object]] = []
    informer.subscribe(changes.append)
    await informer.refresh()
    await api.delete(NODES, "old")
    await api.create(NODES, {"metadata": {"name": "new"}})
    await informer.refresh()
    assert [key.name for key, _ in informer.items()] == ["new"]
    assert [(change.key.name, change.new is None) for change in changes] == [
        ("old", False),
        ("old", True),
        ("new", False),
    ]


async def test_a_refresh_that_a_watch_has_overtaken_brings_nothing_back() -> None:
    api = MemoryApi()
    await api.create(NODES, {"metadata": {"name": "gone"}})
    informer: Informer[Object] = Informer(api, NODES)
    async with running(informer):
        await informer.synced()
        held = api.faults.hold_answer(verb="list", resource=NODES)
        refreshing = asyncio.create_task(informer.refresh())
        await held.reached.wait()
        await api.delete(NODES, "gone")
        await until(lambda: informer.get("gone") is None)
        held.lift()
        await refreshing
        assert informer.get("gone") is None


class Slow(MemoryApi):
    """An API server whose news are on their way until somebody lets them arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.arrive = asyncio.Event()

    async def watch(self, *arguments: Any, **options: Any) -> AsyncGenerator[WatchEvent, None]:
        async with contextlib.aclosing(super().watch(*arguments, **options)) as stream:
            async for event in stream:
                await self.arrive.wait()
                yield event


async def test_news_that_a_refresh_has_overtaken_bring_nothing_back() -> None:
    api = Slow()
    informer: Informer[Object] = Informer(api, NODES)
    changes: list[Change[Object]] = []
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        await api.create(NODES, {"metadata": {"name": "gone"}})
        await api.delete(NODES, "gone")
        await api.create(NODES, {"metadata": {"name": "there"}})
        await informer.refresh()
        api.arrive.set()
        await until(lambda: informer.state.events == 3)
        await api.create(NODES, {"metadata": {"name": "later"}})
        await until(lambda: informer.get("later"))
    assert [(change.key.name, change.new is None) for change in changes] == [
        ("there", False),
        ("later", False),
    ]
