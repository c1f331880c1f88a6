"""The copy of a collection: what it keeps, and how it follows the server."""

import threading

import pytest

from dragoon.kube.informer import Informer
from dragoon.kube.memory import MemoryApi
from dragoon.kube.mirror import Change, Key
from dragoon.kube.port import NODES, PODS, Object
from tests.unit.kube.informing import Waits, node, running, seen, until


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
