"""Publishing to servers that are away (case C50), refuse, or drop fields."""

from dataclasses import replace

import pytest

from dragoon.api import names
from dragoon.errors import (
    ApiConflictError,
    ApiError,
    ApiForbiddenError,
    ApiGoneError,
    ApiInvalidError,
    ApiUnavailableError,
)
from dragoon.gpu.model import LostGpu
from dragoon.kube.port import NODES, SLICES
from dragoon.publish.offer import Offer
from tests.scenario.publish.bench import (
    FAST,
    FINE,
    LOST,
    MANY,
    MORE,
    Bench,
    offered,
    publishing,
    quiet,
    running,
    until,
)
from tests.unit.publish.nodes import address, gpu, inventory


@pytest.mark.parametrize(
    "error",
    [
        ApiUnavailableError("503", status=503),
        ApiUnavailableError("429", status=429),
        ApiUnavailableError("time-out"),
        ApiConflictError("409", status=409),
        ApiGoneError("410", status=410),
        ApiForbiddenError("403", status=403),
        ApiInvalidError("422", status=422),
    ],
    ids=str,
)
@pytest.mark.parametrize("verb", ["create", "replace", "list"])
async def test_c50_publishing_is_tried_again_until_it_succeeds(
    bench: Bench, error: ApiError, verb: str
) -> None:
    async with publishing(bench) as publisher:
        fault = bench.api.faults.fail(error=lambda: error, times=3, verb=verb, resource=SLICES)
        publisher.offer(Offer(MANY))
        await publisher.published()
        assert fault.hits == 3
        assert await bench.shows(MANY)


async def test_c50_an_api_server_away_at_start_is_waited_for(bench: Bench) -> None:
    fault = bench.api.faults.fail(times=None)
    publisher = bench.publisher()
    publisher.offer(Offer(FINE))
    publisher.allow(True)
    async with running(publisher):
        await until(lambda: fault.hits >= 3)
        assert isinstance(publisher.state.error, ApiUnavailableError)
        assert publisher.state.generation is None
        publisher.offer(Offer(MORE))
        fault.lift()
        await publisher.published()
        assert await bench.shows(MORE)


@pytest.mark.parametrize("verb", ["create", "replace", "delete"])
async def test_c50_a_write_whose_answer_is_lost_leaves_no_duplicate(
    bench: Bench, verb: str
) -> None:
    async with publishing(bench, MORE) as publisher:
        bench.api.faults.lose_answer(verb=verb, resource=SLICES)
        publisher.offer(Offer(MANY))
        await publisher.published()
        publisher.offer(Offer(FINE))
        await publisher.published()
        assert await bench.shows(FINE)


async def test_c50_a_wipe_while_the_watch_is_broken_is_noticed(bench: Bench) -> None:
    async with publishing(bench):
        fault = bench.api.faults.fail(verb="watch", resource=SLICES, times=None)
        bench.api.faults.cut_watches()
        await until(lambda: fault.hits > 0)
        await bench.wipe()
        bench.api.compact()
        fault.lift()
        await until(lambda: bench.shows(FINE))


async def test_an_invalid_slice_is_not_sent_in_a_loop(bench: Bench) -> None:
    pace = replace(FAST, first_refused=60.0, last_refused=60.0)
    async with publishing(bench, pace=pace) as publisher:
        bench.api.faults.fail(
            error=lambda: ApiInvalidError("no", status=422), verb="replace", times=None
        )
        before = len(bench.calls("replace"))
        publisher.offer(Offer(MORE))
        await until(lambda: publisher.state.error is not None)
        await quiet(bench)
        assert len(bench.calls("replace")) == before + 1
        bench.api.faults.clear()
        publisher.offer(Offer(LOST))
        await publisher.published()


async def test_what_changes_for_ever_is_written_a_bounded_number_of_times(bench: Bench) -> None:
    pace = replace(FAST, burst=4, rest=3600.0)
    async with publishing(bench, pace=pace) as publisher:
        for turn in range(20):
            publisher.offer(Offer(MORE if turn % 2 == 0 else FINE))
            await until(lambda: publisher.state.current or len(bench.calls()) == 4)
        assert len(bench.calls()) == 4
        await bench.edit(devices=[])
        before = len(bench.calls())
        await quiet(bench)
        assert len(bench.calls()) == before


async def test_what_was_due_when_it_died_of_a_surprise_is_done_by_the_next_run(
    bench: Bench,
) -> None:
    bench.api.faults.fail(error=lambda: KeyError("metadata"), times=1, verb="get", resource=NODES)
    publisher = bench.publisher()
    publisher.offer(Offer(FINE))
    publisher.allow(True)
    with pytest.raises(ExceptionGroup):
        await publisher.run()
    async with running(publisher):
        await publisher.published()
    assert await bench.shows(FINE)


async def test_a_server_without_taints_gets_no_device_that_only_a_taint_protects(
    bench: Bench,
) -> None:
    bench.api.faults.drop(SLICES, "spec", "devices", "*", "taints")
    async with publishing(bench, LOST) as publisher:
        assert await bench.names() == ["gpu-0000-10-00-0"]
        assert publisher.state.left_out == ("gpu-0000-11-00-0",)
        assert len(bench.calls("create")) == 2  # the dry run and the slice
        assert await _ever_published(bench) == {"gpu-0000-10-00-0"}


async def test_a_server_that_was_upgraded_gets_the_tainted_devices(bench: Bench) -> None:
    bench.api.faults.drop(SLICES, "spec", "devices", "*", "taints")
    async with publishing(bench, LOST) as publisher:
        assert publisher.state.left_out
        bench.api.faults.clear()
        await until(lambda: bench.shows(LOST))
        await until(lambda: publisher.state.left_out == ())


async def test_a_server_that_stops_keeping_taints_is_noticed_by_the_next_write(
    bench: Bench,
) -> None:
    async with publishing(bench, LOST) as publisher:
        bench.api.faults.drop(SLICES, "spec", "devices", "*", "taints")
        lost = LostGpu(address(1), "another reason")
        publisher.offer(Offer(offered(inventory(gpu(0), lost=(lost,)))))
        await publisher.published()
        assert await bench.names() == ["gpu-0000-10-00-0"]


async def test_what_a_server_drops_otherwise_is_told_and_not_written_for_ever(
    bench: Bench,
) -> None:
    bench.api.faults.drop(SLICES, "spec", "devices", "*", "capacity")
    async with publishing(bench) as publisher:
        assert [each.path for each in publisher.state.differences] == [
            "spec.devices[gpu-0000-10-00-0].capacity",
            "spec.devices[gpu-0000-11-00-0].capacity",
        ]
        before = len(bench.calls())
        await quiet(bench)
        assert len(bench.calls()) == before
        await bench.edit(devices=[])
        await until(lambda: bench.shows(FINE))


async def test_taints_of_the_published_devices_protect_them(bench: Bench) -> None:
    async with publishing(bench, LOST):
        (slice_,) = await bench.slices()
        (taint,) = slice_["spec"]["devices"][1]["taints"]
        assert (taint["key"], taint["effect"]) == (names.TAINT_LOST, "NoSchedule")


async def test_a_server_that_keeps_taints_is_asked_once(bench: Bench) -> None:
    async with publishing(bench, LOST):
        await bench.edit(devices=[])
        await until(lambda: bench.shows(LOST))
        assert len(bench.calls("create")) == 2  # the dry run and the slice


async def _ever_published(bench: Bench) -> set[str]:
    """The names in every slice that was ever stored."""
    found: set[str] = set()
    stream = bench.api.watch(SLICES, resource_version="1")
    end = int(bench.api.resource_version)
    async for event in stream:
        found |= {device["name"] for device in event.object["spec"]["devices"]}
        if int(event.object["metadata"]["resourceVersion"]) >= end:
            break
    await stream.aclose()
    return found
