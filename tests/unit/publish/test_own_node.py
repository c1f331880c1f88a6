"""The Node of this process: who is told of which changes, and what holds when the server does not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dragoon.errors import ApiGoneError, ApiNotFoundError, ApiUnavailableError, ConfigError
from dragoon.kube.backoff import Backoff
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NODES, Object
from dragoon.publish.own_node import OwnNode
from tests.unit.publish.nodes import NODE

FORMS = "dragoon.dev/forms"


class Place:
    """An API server, this node's Node, and what a follower of it was told."""

    def __init__(self) -> None:
        self.api = MemoryApi()
        self.told: list[Object] = []
        self.own = OwnNode(self.api, NODE, backoff=Backoff(first=0.001, limit=0.005))
        self.own.follow(self.told.append)

    async def make(self, name: str = NODE, **labels: str) -> str:
        """Creates a Node; answers its UID."""
        made = await self.api.create(NODES, {"metadata": {"name": name, "labels": labels}})
        return str(made["metadata"]["uid"])

    async def label(self, key: str, value: str | None, name: str = NODE) -> None:
        await self.api.patch(NODES, name, {"metadata": {"labels": {key: value}}})

    async def status(self, **fields: Any) -> None:
        await self.api.patch(NODES, NODE, {"status": fields}, subresource="status")

    @property
    def forms(self) -> list[str | None]:
        """The label of each Node that was told."""
        return [node["metadata"]["labels"].get(FORMS) for node in self.told]

    @contextlib.asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.own.run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.fixture
def place() -> Place:
    return Place()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - any condition, also without an event
            await asyncio.sleep(0)


async def test_a_label_of_ours_is_told_at_once(place: Place) -> None:
    await place.make()
    async with place.followed():
        await until(lambda: place.forms == [None])
        await place.label(FORMS, "whole_mig")
        await until(lambda: place.forms == [None, "whole_mig"])
        await place.label(FORMS, None)
        await until(lambda: place.forms == [None, "whole_mig", None])


async def test_what_the_kubelet_writes_every_few_minutes_is_told_to_nobody(place: Place) -> None:
    await place.make()
    async with place.followed():
        await until(lambda: place.told)
        await place.status(conditions=[{"type": "Ready", "lastHeartbeatTime": "now"}])
        await place.status(allocatable={"cpu": "8"}, images=[{"names": ["a"]}])
        await place.label("example.com/zone", "a")
        await place.label(FORMS, "shared")
        await until(lambda: "shared" in place.forms)
    assert place.forms == [None, "shared"]


async def test_what_a_device_plugin_offers_is_told(place: Place) -> None:
    await place.make()
    async with place.followed():
        await until(lambda: place.told)
        await place.status(allocatable={"cpu": "8", "nvidia.com/gpu": "8"})
        await until(lambda: len(place.told) == 2)
    assert place.told[-1]["status"] == {"allocatable": {"nvidia.com/gpu": "8"}}


async def test_other_nodes_are_not_followed(place: Place) -> None:
    await place.make()
    await place.make("another")
    async with place.followed():
        await until(lambda: place.told)
        await place.label(FORMS, "mig", name="another")
        await place.label(FORMS, "shared")
        await until(lambda: len(place.told) == 2)
    assert {node["metadata"]["name"] for node in place.told} == {NODE}


async def test_a_node_made_anew_is_told_with_its_new_uid(place: Place) -> None:
    first = await place.make(**{FORMS: "mig"})
    async with place.followed():
        await until(lambda: place.told)
        await place.api.delete(NODES, NODE)
        await until(lambda: place.own.current is None)
        second = await place.make(**{FORMS: "mig"})
        await until(lambda: len(place.told) == 2)
    assert [node["metadata"]["uid"] for node in place.told] == [first, second]
    assert first != second


async def test_a_node_made_anew_while_the_watch_was_away_is_told_too(place: Place) -> None:
    await place.make()
    async with place.followed():
        await until(lambda: place.told)
        away = place.api.faults.fail(verb="watch", times=None)
        place.api.faults.cut_watches()
        await until(lambda: away.hits)
        await place.api.delete(NODES, NODE)
        second = await place.make()
        place.api.compact()
        away.lift()
        await until(lambda: len(place.told) == 2)
    assert place.told[-1]["metadata"]["uid"] == second


async def test_c50_a_server_that_is_away_at_the_start_is_waited_for(place: Place) -> None:
    away = place.api.faults.fail(times=None)
    async with place.followed():
        await until(lambda: away.hits > 2)
        with pytest.raises(ApiUnavailableError):
            await place.own.read()
        assert place.own.current is None
        away.lift()
        await place.make(**{FORMS: "mig"})
        await until(lambda: place.forms == ["mig"])


async def test_a_label_set_while_the_server_forgot_our_version_is_told(place: Place) -> None:
    await place.make()
    async with place.followed():
        await until(lambda: place.told)
        gone = place.api.faults.fail(
            verb="watch", error=lambda: ApiGoneError("too old", status=410)
        )
        place.api.faults.cut_watches()
        await place.label(FORMS, "mig")
        await until(lambda: place.forms == [None, "mig"])
    assert gone.hits == 1


async def test_what_is_read_is_newer_than_the_watch_and_told_once(place: Place) -> None:
    await place.make()
    async with place.followed():
        await until(lambda: place.told)
        away = place.api.faults.fail(verb="watch", times=None)
        place.api.faults.cut_watches()
        await place.label(FORMS, "mig")
        assert (await place.own.read())["metadata"]["labels"] == {FORMS: "mig"}
        assert place.forms == [None, "mig"]
        away.lift()
        await place.label(FORMS, "shared")
        await until(lambda: "shared" in place.forms)
    assert place.forms == [None, "mig", "shared"]


async def test_a_node_that_is_not_there_cannot_be_read(place: Place) -> None:
    with pytest.raises(ApiNotFoundError, match=NODE):
        await place.own.read()
    uid = await place.make()
    assert (await place.own.read())["metadata"]["uid"] == uid
    await place.api.delete(NODES, NODE)
    with pytest.raises(ApiNotFoundError, match=NODE):
        await place.own.read()


def test_a_name_that_no_node_can_have_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="node name"):
        OwnNode(MemoryApi(), "Node_A")
