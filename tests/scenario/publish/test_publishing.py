"""The publisher against an API server: cases C16 and C50, and servers that drop fields."""

from dataclasses import replace
from typing import Any

import pytest

from dragoon.api import names
from dragoon.errors import (
    ApiConflictError,
    ApiError,
    ApiForbiddenError,
    ApiGoneError,
    ApiInvalidError,
    ApiUnavailableError,
    ConfigError,
)
from dragoon.gpu.model import LostGpu
from dragoon.kube.port import NODES, SLICES
from dragoon.publish.device import Device, Taint
from dragoon.publish.offer import Offer
from dragoon.publish.pacing import Pace
from dragoon.publish.publisher import Publisher
from dragoon.telemetry.metrics import Metrics
from tests.scenario.publish.bench import (
    FAST,
    FINE,
    MORE,
    Bench,
    offered,
    publishing,
    quiet,
    running,
    until,
)
from tests.unit.publish.nodes import DRIVER, NODE, address, gpu, inventory

LOST = offered(inventory(gpu(0), lost=(LostGpu(address(1), "no answer"),)))
MANY = tuple(Device(f"gpu-{n:03d}", {"type": {"string": "gpu"}}, {}) for n in range(130))


@pytest.fixture
async def bench() -> Bench:
    made = Bench()
    await made.node()
    return made


@pytest.mark.parametrize("devices", [FINE, (), MANY, LOST], ids=["two", "none", "many", "lost"])
async def test_what_is_offered_is_published(bench: Bench, devices: tuple[Device, ...]) -> None:
    async with publishing(bench, devices) as publisher:
        assert await bench.shows(devices)
        state = publisher.state
        assert (state.current, state.generation, state.devices) == (True, 1, len(devices))
        assert (state.error, state.left_out, state.differences) == (None, (), ())


async def test_slices_are_owned_by_the_node_and_read_in_order(bench: Bench) -> None:
    async with publishing(bench, MANY):
        node = await bench.api.get(NODES, NODE)
        for each in await bench.slices():
            (owner,) = each["metadata"]["ownerReferences"]
            assert owner["uid"] == node["metadata"]["uid"]
            assert owner["controller"] is True
        assert await bench.names() == [device.name for device in MANY]


async def test_nothing_is_written_before_the_kubelet_has_registered_us(bench: Bench) -> None:
    publisher = bench.publisher()
    publisher.offer(Offer(FINE))
    async with running(publisher):
        await until(lambda: bool(bench.calls("watch")))
        assert bench.calls() == []
        publisher.allow(True)
        await publisher.published()
    assert await bench.shows(FINE)


async def test_nothing_is_written_before_anything_was_offered(bench: Bench) -> None:
    publisher = bench.publisher()
    publisher.allow(True)
    async with running(publisher):
        await until(lambda: bool(bench.calls("watch")))
        assert bench.calls() == []
        publisher.offer(Offer(()))
        await publisher.published()
    assert await bench.shows(())


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


async def test_a_restarted_publisher_writes_nothing_where_all_is_well(bench: Bench) -> None:
    async with publishing(bench, MANY):
        before = len(bench.calls())
    async with publishing(bench, MANY) as again:
        assert len(bench.calls()) == before
        assert again.state.generation == 1


async def test_the_last_of_many_offers_wins(bench: Bench) -> None:
    async with publishing(bench) as publisher:
        for devices in (MORE, (), LOST, MANY, MORE):
            publisher.offer(Offer(devices))
        await publisher.published()
        assert await bench.shows(MORE)


async def test_an_offer_in_the_middle_of_an_attempt_is_published_next(bench: Bench) -> None:
    held = bench.api.faults.hang(verb="create", resource=SLICES)
    publisher = bench.publisher()
    publisher.offer(Offer(FINE))
    publisher.allow(True)
    async with running(publisher):
        await held.reached.wait()
        publisher.offer(Offer(MORE))
        next_ = bench.api.faults.hang(verb="replace", resource=SLICES)
        held.lift()
        await next_.reached.wait()
        assert not publisher.state.current
        next_.lift()
        await publisher.published()
        assert await bench.shows(MORE)


async def test_a_kubelet_that_goes_in_the_middle_of_an_attempt_ends_it(bench: Bench) -> None:
    held = bench.api.faults.hang(verb="create", resource=SLICES)
    publisher = bench.publisher()
    publisher.offer(Offer(MANY))
    publisher.allow(True)
    async with running(publisher):
        await held.reached.wait()
        publisher.allow(False)
        held.lift()
        await quiet(bench)
        assert len(bench.calls("create")) == 1
        publisher.allow(True)
        await publisher.published()
        assert await bench.shows(MANY)


async def test_an_obsolete_slice_deleted_by_somebody_else_is_no_failure(bench: Bench) -> None:
    async with publishing(bench, MANY) as publisher:
        held = bench.api.faults.hang(verb="delete", resource=SLICES)
        publisher.offer(Offer(FINE))
        await held.reached.wait()
        (*_, last) = await bench.slices()
        for slice_ in (await bench.slices())[1:]:
            await bench.api.delete(SLICES, slice_["metadata"]["name"])
        assert last not in await bench.slices()
        held.lift()
        await publisher.published()
        assert await bench.shows(FINE)
        assert "dragoon_api_errors_total{" not in bench.metrics.text().decode()


async def test_writes_are_counted(bench: Bench) -> None:
    async with publishing(bench, MANY) as publisher:
        publisher.offer(Offer(FINE))
        await publisher.published()
        for verb, count in (("create", 3), ("delete", 2), ("update", 1)):
            assert bench.metric(f'dragoon_slice_writes_total{{verb="{verb}"}} {count}.0')
        assert bench.metric("dragoon_slices_published 1.0")


async def test_slices_of_an_older_pool_name_are_removed_and_other_nodes_are_not_touched(
    bench: Bench,
) -> None:
    for node, pool in ((NODE, NODE), ("node-b", "node-b/gpu")):
        spec = {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": pool, "generation": 4, "resourceSliceCount": 1},
        }
        await bench.api.create(SLICES, {"metadata": {"name": f"{node}-old"}, "spec": spec})
    async with publishing(bench):
        left = {each["metadata"]["name"] for each in await bench.slices()}
        assert f"{NODE}-old" not in left
        assert "node-b-old" in left


async def test_a_node_made_anew_becomes_the_owner(bench: Bench) -> None:
    async with publishing(bench):
        await bench.api.delete(NODES, NODE)
        node = await bench.node()
        await bench.wipe()

        async def owned() -> bool:
            owners = [each["metadata"]["ownerReferences"][0] for each in await bench.slices()]
            return [owner["uid"] for owner in owners] == [node["metadata"]["uid"]]

        await until(owned)


async def test_a_node_that_is_not_there_yet_is_waited_for() -> None:
    bench = Bench()
    publisher = bench.publisher()
    publisher.offer(Offer(FINE))
    publisher.allow(True)
    async with running(publisher):
        await until(lambda: publisher.state.error is not None)
        assert bench.calls() == []
        await bench.node()
        await publisher.published()
        assert publisher.state.error is None


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


async def test_two_publishers_of_one_node_agree(bench: Bench) -> None:
    async with publishing(bench, MANY) as first, publishing(bench, MANY) as second:
        await bench.wipe()
        await until(lambda: bench.shows(MANY))
        await quiet(bench)
        assert await bench.shows(MANY)
        assert first.state.error is None
        assert second.state.error is None


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


async def test_a_name_that_no_node_can_have_is_refused_at_once(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="node name"):
        Publisher(bench.api, driver=DRIVER, node="Node_A", metrics=Metrics("test"))


async def _names(bench: Bench) -> list[str]:
    """The names of all slices, read past the faults ordered for lists."""
    stream = bench.api.watch(SLICES, resource_version="0")
    found = [(await anext(stream)).object["metadata"]["name"]]
    await stream.aclose()
    return found


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
