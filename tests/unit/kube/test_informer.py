import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import pytest

from dragoon.errors import ApiForbiddenError, ApiGoneError, ApiUnavailableError
from dragoon.kube.backoff import Backoff
from dragoon.kube.faults import Call
from dragoon.kube.informer import Change, Informer, Key
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NODES, PODS, SLICES, Object

_Kept = TypeVar("_Kept")


def node(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


class Waits:
    """A sleep that takes no time and remembers how long it was asked for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, delay: float) -> None:
        self.seconds.append(delay)
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def running(informer: Informer[_Kept]) -> AsyncIterator[Informer[_Kept]]:
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - any condition, also without an event
            await asyncio.sleep(0)


def watches(api: MemoryApi) -> list[Call]:
    return [call for call in api.faults.calls if call.verb == "watch"]


def seen(changes: list[Change[Object]]) -> list[tuple[str, str]]:
    """(what, name) of every change."""

    def what(change: Change[Object]) -> str:
        if change.old is None:
            return "added"
        return "deleted" if change.new is None else "updated"

    return [(what(change), change.key.name) for change in changes]


async def test_the_copy_follows_the_server() -> None:
    api = MemoryApi()
    await api.create(NODES, node("a"))
    changes: list[Change[Object]] = []
    informer: Informer[Object] = Informer(api, NODES)
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        await api.create(NODES, node("b"))
        await api.patch(NODES, "a", {"metadata": {"labels": {"x": "1"}}})
        await api.delete(NODES, "b")
        await until(lambda: len(changes) == 4)
    assert seen(changes) == [
        ("added", "a"),
        ("added", "b"),
        ("updated", "a"),
        ("deleted", "b"),
    ]
    assert changes[2].old == changes[0].new
    assert changes[2].new == informer.get("a")
    assert [key for key, _ in informer.items()] == [Key("", "a")]
    assert informer.get("b") is None


async def test_namespaces_keep_equal_names_apart() -> None:
    api = MemoryApi()
    for namespace in ("one", "two"):
        await api.create(PODS, {"metadata": {"name": "p", "namespace": namespace}})
    informer: Informer[Object] = Informer(api, PODS)
    async with running(informer):
        await informer.synced()
    assert {key.namespace for key, _ in informer.items()} == {"one", "two"}
    assert informer.get("p", "one") != informer.get("p", "two")
    assert informer.get("p") is None


async def test_only_what_is_selected_is_kept() -> None:
    api = MemoryApi()
    informer: Informer[Object] = Informer(api, NODES, labels="keep")
    async with running(informer):
        await informer.synced()
        await api.create(NODES, node("a", keep="1"))
        await api.create(NODES, node("b"))
        await until(lambda: informer.get("a"))
        await api.patch(NODES, "a", {"metadata": {"labels": {"keep": None}}})
        await until(lambda: informer.get("a") is None)
    assert not informer.items()


async def test_a_late_subscriber_hears_of_what_is_there() -> None:
    api = MemoryApi()
    await api.create(NODES, node("a"))
    informer: Informer[Object] = Informer(api, NODES)
    changes: list[Change[Object]] = []
    async with running(informer):
        await informer.synced()
        informer.subscribe(changes.append)
    assert seen(changes) == [("added", "a")]


async def test_a_cut_watch_goes_on_where_it_was_without_a_list() -> None:
    api = MemoryApi()
    informer: Informer[Object] = Informer(api, NODES, sleep=Waits())
    async with running(informer):
        await informer.synced()
        await api.create(NODES, node("a"))
        await until(lambda: informer.get("a"))
        api.faults.cut_watches()
        await api.create(NODES, node("b"))
        await until(lambda: informer.get("b"))
    assert (informer.state.lists, informer.state.breaks) == (1, 1)


async def test_after_410_a_new_list_tells_what_vanished() -> None:
    api = MemoryApi()
    for name in ("a", "b"):
        await api.create(NODES, node(name))
    changes: list[Change[Object]] = []
    informer: Informer[Object] = Informer(api, NODES, sleep=Waits())
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        away = api.faults.fail(verb="watch", times=None)
        api.faults.cut_watches()
        await api.delete(NODES, "a")
        await api.create(NODES, node("c"))
        api.compact()
        away.lift()
        await until(lambda: informer.get("c"))
    assert seen(changes) == [("added", "a"), ("added", "b"), ("deleted", "a"), ("added", "c")]
    assert informer.state.lists == 2


async def test_410_is_answered_with_one_list_at_once() -> None:
    api = MemoryApi()
    informer: Informer[Object] = Informer(api, NODES, sleep=Waits())
    async with running(informer):
        await informer.synced()
        api.faults.fail(verb="watch", error=lambda: ApiGoneError("too old", status=410))
        api.faults.cut_watches()
        await api.create(NODES, node("a"))
        await until(lambda: informer.get("a"))
    assert (informer.state.lists, informer.state.breaks) == (2, 2)


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


async def test_a_new_object_of_the_same_name_is_a_deletion_and_an_addition() -> None:
    api = MemoryApi()
    await api.create(NODES, node("a"))
    changes: list[Change[Object]] = []
    informer: Informer[Object] = Informer(api, NODES, sleep=Waits())
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        away = api.faults.fail(verb="watch", times=None)
        api.faults.cut_watches()
        await api.delete(NODES, "a")
        await api.create(NODES, node("a"))
        api.compact()
        away.lift()
        await until(lambda: len(changes) == 3)
    assert seen(changes) == [("added", "a"), ("deleted", "a"), ("added", "a")]


async def test_a_handler_that_fails_stops_neither_the_others_nor_the_copy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = MemoryApi()
    changes: list[Change[Object]] = []

    def broken(_change: Change[Object]) -> None:
        raise RuntimeError("a bug")

    informer: Informer[Object] = Informer(api, NODES)
    informer.subscribe(broken)
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        await api.create(NODES, node("a"))
        await api.delete(NODES, "a")
        await until(lambda: len(changes) == 2)
    assert caplog.text.count("a handler of nodes failed") == 2


async def test_decoded_records_are_kept_and_a_bad_object_costs_only_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = MemoryApi()
    await api.create(NODES, node("good", size="1"))
    await api.create(NODES, node("bad", size="x"))
    informer = Informer(api, NODES, decode=lambda raw: int(raw["metadata"]["labels"]["size"]))
    changes: list[Change[int]] = []
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        assert dict(informer.items()) == {Key("", "good"): 1}
        await api.patch(NODES, "bad", {"metadata": {"labels": {"size": "2"}}})
        await until(lambda: informer.get("bad") == 2)
        await api.patch(NODES, "good", {"metadata": {"labels": {"size": "y"}}})
        await until(lambda: informer.get("good") is None)
    assert changes[-1] == Change(Key("", "good"), 1, None)
    assert "cannot be read" in caplog.text


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


class Address:
    """Where a server answers; which one may change."""

    def __init__(self, server: MemoryApi) -> None:
        self.server = server

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.server, verb)


async def test_a_server_restored_from_a_backup_is_believed() -> None:
    before, backup = MemoryApi(), MemoryApi()
    for number in range(10):
        await before.create(NODES, node(f"n{number}"))
    await backup.create(NODES, node("kept"))
    await backup.create(NODES, node("n1", state="old"))
    address = Address(before)
    informer: Informer[Object] = Informer(address, NODES, sleep=Waits())
    changes: list[Change[Object]] = []
    informer.subscribe(changes.append)
    async with running(informer):
        await informer.synced()
        address.server = backup
        before.faults.cut_watches()
        await until(lambda: informer.get("kept"))
    assert {key.name for key, _ in informer.items()} == {"kept", "n1"}
    assert informer.get("n1") == await backup.get(NODES, "n1")
    assert ("deleted", "n9") in seen(changes)


async def test_c50_minutes_without_the_server_cost_few_calls_and_nothing_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    api, waits = MemoryApi(), Waits()
    await api.create(NODES, node("a"))
    informer: Informer[Object] = Informer(
        api, NODES, sleep=waits, backoff=Backoff(first=0.5, limit=30.0, rng=lambda: 1.0)
    )
    async with running(informer):
        await informer.synced()
        outage = api.faults.fail(times=None)
        api.faults.cut_watches()
        await until(lambda: sum(waits.seconds) > 120)
        assert outage.hits < 20
        assert isinstance(informer.state.last_error, ApiUnavailableError)
        assert informer.get("a") is not None
        outage.lift()
        await api.create(NODES, node("b"))
        await api.delete(NODES, "a")
        await until(lambda: informer.get("b") and not informer.get("a"))
        await until(lambda: informer.state.last_error is None)
        waits.seconds.append(0.0)
        api.faults.cut_watches()
        await until(lambda: waits.seconds[-1])
        assert waits.seconds[-1] == 0.5
    assert waits.seconds[:7] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]


async def test_c50_a_server_away_at_the_start_is_waited_for() -> None:
    api = MemoryApi()
    await api.create(NODES, node("a"))
    outage = api.faults.fail(times=7)
    informer: Informer[Object] = Informer(api, NODES, sleep=Waits())
    async with running(informer):
        assert not informer.state.synced
        await informer.synced()
    assert outage.hits == 7
    assert informer.get("a") is not None


async def test_missing_permission_is_waited_out_and_shown() -> None:
    api = MemoryApi()
    denied = api.faults.fail(
        verb="list", times=None, error=lambda: ApiForbiddenError("nodes is forbidden", status=403)
    )
    informer: Informer[Object] = Informer(api, NODES, sleep=Waits())
    async with running(informer):
        await until(lambda: denied.hits > 3)
        assert isinstance(informer.state.last_error, ApiForbiddenError)
        denied.lift()
        await informer.synced()
    assert informer.state.last_error is None


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_loop() -> None:
    api, waits = MemoryApi(), Waits()
    informer: Informer[Object] = Informer(api, SLICES, sleep=waits)
    async with running(informer):
        await informer.synced()
        for count in range(1, 4):
            await until(lambda count=count: len(watches(api)) == count)  # type: ignore[misc]
            api.faults.end_watches()
        await until(lambda: len(watches(api)) == 4)
    assert len(waits.seconds) == 3
    assert waits.seconds[2] > waits.seconds[0]


async def test_a_watch_refused_after_every_list_is_tried_more_and_more_seldom() -> None:
    api, waits = MemoryApi(), Waits()
    gone = api.faults.fail(
        verb="watch", times=None, error=lambda: ApiGoneError("too old", status=410)
    )
    informer: Informer[Object] = Informer(
        api, NODES, sleep=waits, backoff=Backoff(first=0.5, limit=30.0, rng=lambda: 1.0)
    )
    async with running(informer):
        await until(lambda: gone.hits > 7)
    assert waits.seconds[:7] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]


async def test_the_state_says_when_something_last_came() -> None:
    api, ticks = MemoryApi(), iter(range(100))
    informer: Informer[Object] = Informer(api, NODES, clock=lambda: float(next(ticks)))
    assert informer.state.last_event is None
    async with running(informer):
        await informer.synced()
        assert informer.state.last_event == 0.0
        await api.create(NODES, node("a"))
        await until(lambda: informer.state.events == 1)
        assert informer.state.last_event == 1.0
        assert informer.state.resource_version == api.resource_version
        api.bookmark()
        await until(lambda: informer.state.events == 2)


async def test_cancelling_leaves_the_copy_readable_and_the_stream_closed() -> None:
    api = MemoryApi()
    await api.create(NODES, node("a"))
    informer: Informer[Object] = Informer(api, NODES)
    async with running(informer):
        await informer.synced()
    assert informer.get("a") is not None


async def test_a_large_collection_comes_in_pages_and_is_read_in_another_thread() -> None:
    api = MemoryApi()
    for index in range(5):
        await api.create(NODES, {"metadata": {"name": f"n{index}"}})
    threads: set[int] = set()

    def decode(raw: Object) -> str:
        threads.add(threading.get_ident())
        return str(raw["metadata"]["name"])

    informer = Informer(api, NODES, decode=decode, page=2)
    async with running(informer):
        await informer.synced()
    assert sorted(informer.values()) == [f"n{index}" for index in range(5)]
    assert threads
    assert threading.get_ident() not in threads


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
