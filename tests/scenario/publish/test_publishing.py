"""The publisher against an API server: what is offered is published, once, and by whom."""

import pytest

from dragoon.kube.port import NODES, SLICES
from dragoon.publish.device import Device
from dragoon.publish.offer import Offer
from tests.scenario.publish.bench import (
    FINE,
    LOST,
    MANY,
    MORE,
    Bench,
    publishing,
    quiet,
    running,
    until,
)
from tests.unit.publish.nodes import DRIVER, NODE


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


@pytest.mark.parametrize("wiped", [False, True], ids=["slices stay", "slices go"])
async def test_a_node_made_anew_becomes_the_owner(bench: Bench, *, wiped: bool) -> None:
    async with publishing(bench):
        before = [each["metadata"]["uid"] for each in await bench.slices()]
        await bench.api.delete(NODES, NODE)
        node = await bench.node()
        if wiped:
            await bench.wipe()

        async def owned() -> bool:
            owners = [each["metadata"]["ownerReferences"][0] for each in await bench.slices()]
            return [owner["uid"] for owner in owners] == [node["metadata"]["uid"]]

        await until(owned)
        if not wiped:
            assert [each["metadata"]["uid"] for each in await bench.slices()] == before


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


async def test_two_publishers_of_one_node_agree(bench: Bench) -> None:
    async with publishing(bench, MANY) as first, publishing(bench, MANY) as second:
        await bench.wipe()
        await until(lambda: bench.shows(MANY))
        await quiet(bench)
        assert await bench.shows(MANY)
        assert first.state.error is None
        assert second.state.error is None
