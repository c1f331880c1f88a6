import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from dragoon.errors import ApiForbiddenError
from dragoon.kube.events import WARNING, EventRecorder
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import EVENTS, NODES, Object

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "team", "uid": "u1"},
    "spec": {"secret": "not for events"},
}


class Time:
    """A clock that moves when told to, and when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def clock(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 11, 29, tzinfo=UTC) + timedelta(seconds=self.seconds)

    async def sleep(self, delay: float) -> None:
        self.seconds += delay
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def recording(api: MemoryApi, time: Time) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(
        api, "gpu.dragoon.dev", "node-1", now=time.now, clock=time.clock, sleep=time.sleep
    )
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def emit(recorder: EventRecorder, note: str = "GPU 1 is lost", regarding: Object = POD) -> None:
    recorder.emit(regarding, reason="PrepareFailed", note=note, action="Prepare", type_=WARNING)


async def events(api: MemoryApi) -> list[Object]:
    return list((await api.list(EVENTS)).items)


async def test_an_event_names_its_object_and_who_reports_it() -> None:
    api, time = MemoryApi(), Time()
    async with recording(api, time) as recorder:
        emit(recorder)
        await recorder.flush()
    (event,) = await events(api)
    assert event["metadata"]["namespace"] == "team"
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "namespace": "team",
        "uid": "u1",
    }
    assert (event["reason"], event["type"], event["action"]) == (
        "PrepareFailed",
        "Warning",
        "Prepare",
    )
    assert event["note"] == "GPU 1 is lost"
    assert event["eventTime"] == "2026-11-29T00:00:00.000000Z"
    assert (event["reportingController"], event["reportingInstance"]) == (
        "gpu.dragoon.dev",
        "node-1",
    )
    assert "series" not in event


async def test_repetitions_are_counted_in_one_object() -> None:
    api, time = MemoryApi(), Time()
    async with recording(api, time) as recorder:
        for second in range(4):
            time.seconds = float(second)
            emit(recorder)
            await recorder.flush()
    (event,) = await events(api)
    assert event["series"] == {"count": 4, "lastObservedTime": "2026-11-29T00:00:03.000000Z"}
    assert event["eventTime"] == "2026-11-29T00:00:00.000000Z"


async def test_repetitions_before_the_first_write_are_one_write() -> None:
    api, time = MemoryApi(), Time()
    async with recording(api, time) as recorder:
        for _ in range(5):
            emit(recorder)
        await recorder.flush()
    (event,) = await events(api)
    assert event["series"]["count"] == 5
    assert len(api.faults.calls) == 2  # the create, and the list of this test


async def test_other_notes_and_later_repetitions_are_other_events() -> None:
    api, time = MemoryApi(), Time()
    async with recording(api, time) as recorder:
        emit(recorder)
        emit(recorder, note="GPU 2 is lost")
        await recorder.flush()
        time.seconds = 400.0
        emit(recorder)
        await recorder.flush()
    assert len(await events(api)) == 3


async def test_an_event_on_a_node_lives_in_the_default_namespace() -> None:
    api, time = MemoryApi(), Time()
    node = await api.create(NODES, {"metadata": {"name": "n"}})
    async with recording(api, time) as recorder:
        emit(recorder, regarding=node)
        await recorder.flush()
    (event,) = await events(api)
    assert event["metadata"]["namespace"] == "default"


async def test_one_object_cannot_flood_the_server_and_the_count_catches_up() -> None:
    api, time = MemoryApi(), Time()
    async with recording(api, time) as recorder:
        for number in range(100):
            emit(recorder, note=f"note {number}")
        await recorder.flush()
        assert len(await events(api)) == 25
        emit(recorder, note="note 0")
        emit(recorder, regarding={**POD, "metadata": {"name": "q", "namespace": "team"}})
        await recorder.flush()
        assert len(await events(api)) == 26
        time.seconds = 300.0
        emit(recorder, note="note 0")
        await recorder.flush()
    found = {event["note"]: event for event in await events(api)}
    assert found["note 0"]["series"]["count"] == 3


async def test_c50_an_event_outlives_a_short_outage() -> None:
    api, time = MemoryApi(), Time()
    api.faults.fail(verb="create", times=2)
    async with recording(api, time) as recorder:
        emit(recorder)
        await recorder.flush()
    assert len(await events(api)) == 1


async def test_an_answer_that_was_lost_makes_no_second_event() -> None:
    api, time = MemoryApi(), Time()
    api.faults.lose_answer(verb="create")
    async with recording(api, time) as recorder:
        emit(recorder)
        await recorder.flush()
    assert len(await events(api)) == 1


async def test_an_expired_event_is_started_anew() -> None:
    api, time = MemoryApi(), Time()
    async with recording(api, time) as recorder:
        emit(recorder)
        emit(recorder)
        await recorder.flush()
        (first,) = await events(api)
        await api.delete(EVENTS, first["metadata"]["name"], namespace="team")
        emit(recorder)
        await recorder.flush()
        emit(recorder)
        await recorder.flush()
    (second,) = await events(api)
    assert second["metadata"]["name"] != first["metadata"]["name"]
    assert second["series"]["count"] == 2


async def test_a_write_that_is_refused_is_logged_and_costs_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    api, time = MemoryApi(), Time()
    api.faults.fail(
        verb="create", error=lambda: ApiForbiddenError("events is forbidden", status=403)
    )
    async with recording(api, time) as recorder:
        emit(recorder)
        emit(recorder, note="another")
        await recorder.flush()
    assert [event["note"] for event in await events(api)] == ["another"]
    assert "PrepareFailed on Pod team/p is lost" in caplog.text


async def test_emitting_never_waits_for_the_server() -> None:
    api, time = MemoryApi(), Time()
    hang = api.faults.hang(verb="create")
    async with recording(api, time) as recorder:
        emit(recorder)
        async with asyncio.timeout(60):
            await hang.reached.wait()
        emit(recorder, note="another")
        hang.lift()
        await recorder.flush()
    assert len(await events(api)) == 2


async def test_texts_are_cut_to_what_the_server_takes() -> None:
    api, time = MemoryApi(), Time()
    long = {**POD, "metadata": {"name": "a" * 199 + "-b", "namespace": "team"}}
    async with recording(api, time) as recorder:
        emit(recorder, note="x" * 5000, regarding=long)
        await recorder.flush()
    (event,) = await events(api)
    assert len(event["note"]) == 1024
