"""Case C16: slices that others wipe or edit are put back, and nothing else is written."""

from dataclasses import replace
from typing import Any

import pytest

from dragoon.api import names
from dragoon.kube.port import SLICES
from dragoon.publish.device import Taint
from dragoon.publish.offer import Offer
from dragoon.publish.pacing import Pace
from tests.scenario.publish.bench import (
    FINE,
    MANY,
    MORE,
    Bench,
    publishing,
    quiet,
    running,
    until,
)
from tests.unit.publish.nodes import NODE


async def test_a_wipe_is_not_repaired_until_the_kubelet_has_registered_us_again(
    bench: Bench,
) -> None:
    async with publishing(bench) as publisher:
        publisher.allow(False)
        before = len(bench.calls("create", "replace"))
        await bench.wipe()
        publisher.offer(Offer(MORE))
        await quiet(bench)
        assert len(bench.calls("create", "replace")) == before
        publisher.allow(True)
        await publisher.published()
        assert await bench.shows(MORE)


async def test_c16_wiped_slices_are_back_within_seconds(bench: Bench) -> None:
    # Edits may wait, a wipe must not.
    async with publishing(bench, MANY, pace=replace(Pace(), edit=3600.0)):
        (before, *_) = await bench.slices()
        await bench.wipe()
        await until(lambda: bench.shows(MANY))
        (after, *_) = await bench.slices()
        assert after["spec"]["pool"]["generation"] > before["spec"]["pool"]["generation"]
        assert after["spec"]["devices"] == before["spec"]["devices"]


async def test_c16_an_edit_is_undone_within_seconds_too(bench: Bench) -> None:
    async with publishing(bench, pace=Pace()):
        await bench.edit(devices=[])
        await until(lambda: bench.shows(FINE))
        assert bench.metric("dragoon_slice_repairs_total 1.0")


@pytest.mark.parametrize("position", [1, 2])
async def test_c16_a_wipe_while_the_publisher_starts_is_noticed(
    bench: Bench, position: int
) -> None:
    async with publishing(bench):
        pass
    publisher = bench.publisher()
    publisher.offer(Offer(FINE))
    publisher.allow(True)
    lists = len(bench.calls("list")) + position
    held = bench.api.faults.hang(
        verb="list", resource=SLICES, when=lambda _: len(bench.calls("list")) == lists
    )
    async with running(publisher):
        await held.reached.wait()
        for call in await _names(bench):
            await bench.api.delete(SLICES, call)
        held.lift()
        await until(lambda: bench.shows(FINE))


async def test_c16_a_slice_made_and_wiped_while_the_watch_is_broken_is_noticed(
    bench: Bench,
) -> None:
    publisher = bench.publisher()
    publisher.offer(Offer(FINE))
    async with running(publisher):
        await until(lambda: bool(bench.calls("watch")))
        fault = bench.api.faults.fail(verb="watch", resource=SLICES, times=None)
        bench.api.faults.cut_watches()
        await until(lambda: fault.hits > 0)
        publisher.allow(True)
        await publisher.published()
        await bench.wipe()
        bench.api.compact()
        fault.lift()
        await until(lambda: bench.shows(FINE))


@pytest.mark.parametrize(
    "spec",
    [
        {"devices": []},
        {"devices": [{"name": "gpu-of-somebody"}]},
        {"pool": {"name": f"{NODE}/gpu", "generation": 9, "resourceSliceCount": 4}},
    ],
)
async def test_c16_an_edit_by_others_is_undone(bench: Bench, spec: dict[str, Any]) -> None:
    async with publishing(bench):
        await bench.edit(**spec)
        await until(lambda: bench.shows(FINE))


async def test_c16_unchanged_hardware_is_not_written_again(bench: Bench) -> None:
    async with publishing(bench) as publisher:
        before = len(bench.calls())
        publisher.offer(Offer(FINE))
        assert publisher.state.current
        publisher.allow(True)
        publisher.allow(False)
        publisher.allow(True)
        await quiet(bench)
        assert len(bench.calls()) == before


async def test_c16_a_taint_that_a_kubelet_wipes_comes_back_with_the_time_that_it_had(
    bench: Bench,
) -> None:
    taint = Taint(names.TAINT_XID, "79", "NoExecute")
    devices = (FINE[0], FINE[1].tainted(taint))
    async with publishing(bench, devices):
        (slice_,) = await bench.slices()
        stood = slice_["spec"]["devices"]
        stood[1]["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z"
        # Put back without the first device: so that it is repaired, and the time is seen.
        await bench.edit(devices=stood[1:])
        await until(lambda: bench.shows(devices))
        await bench.wipe()
        await until(lambda: bench.shows(devices))
        (found,) = (await bench.slices())[0]["spec"]["devices"][1]["taints"]
    assert found == {**taint.raw(), "timeAdded": "2026-01-01T00:00:00Z"}


async def _names(bench: Bench) -> list[str]:
    """The names of all slices, read past the faults ordered for lists."""
    stream = bench.api.watch(SLICES, resource_version="0")
    found = [(await anext(stream)).object["metadata"]["name"]]
    await stream.aclose()
    return found
