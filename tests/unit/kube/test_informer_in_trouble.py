"""The copy while the server is away, forgets, refuses, or was restored: nothing is lost, little is asked."""

import logging
from typing import Any

import pytest

from dragoon.errors import ApiForbiddenError, ApiGoneError, ApiUnavailableError
from dragoon.kube.backoff import Backoff
from dragoon.kube.informer import Informer
from dragoon.kube.memory import MemoryApi
from dragoon.kube.mirror import Change
from dragoon.kube.port import NODES, SLICES, Object
from tests.unit.kube.informing import Waits, node, running, seen, until, watches


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
