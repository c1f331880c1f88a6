"""What is offered where a server is old, or drops or refuses what keeps forms apart: whole GPUs."""

import pytest

from dragoon.kube.events import EventRecorder
from dragoon.kube.port import SLICES
from dragoon.publish.holding import Prepared
from dragoon.publish.offering import Offering
from tests.scenario.publish.bench import running, until
from tests.scenario.publish.formbed import MIG, TWO, WHOLE, Node, has, is_there
from tests.unit.publish.nodes import DRIVER, NODE

COUNTERS = ("spec", "devices", "*", "consumesCounters"), ("spec", "sharedCounters")
SHARES = (
    ("spec", "devices", "*", "allowMultipleAllocations"),
    ("spec", "devices", "*", "capacity", "memory", "requestPolicy"),
    ("spec", "devices", "*", "capacity", "cores", "requestPolicy"),
)


@pytest.mark.parametrize("dropped", [COUNTERS, SHARES], ids=["counters", "shares"])
async def test_a_server_that_drops_what_keeps_forms_apart_gets_whole_gpus(
    node: Node, dropped: tuple[tuple[str, ...], ...]
) -> None:
    for path in dropped:
        node.bench.api.faults.drop(SLICES, *path)
    async with node.offering() as (_, publisher):
        assert publisher.state.whole_only
        found = await node.devices()
        assert set(found) == {WHOLE, "gpu-0000-11-00-0"}
        assert all(set(raw) == {"name", "attributes", "capacity"} for raw in found.values())
        assert await ever_published(node) == {WHOLE, "gpu-0000-11-00-0"}
        node.bench.api.faults.clear()
        await until(lambda: has(node, MIG))
        await until(lambda: not publisher.state.whole_only)


async def test_a_server_that_refuses_what_keeps_forms_apart_gets_whole_gpus(node: Node) -> None:
    node.bench.api.faults.drop(SLICES, "spec", "devices", "*", "allowMultipleAllocations")
    async with node.offering() as (_, publisher):
        assert publisher.state.whole_only
        assert set(await node.devices()) == {WHOLE, "gpu-0000-11-00-0"}


async def test_a_server_that_stops_keeping_counters_is_noticed_by_the_next_write(
    node: Node,
) -> None:
    async with node.offering() as (_, publisher):
        for path in COUNTERS:
            node.bench.api.faults.drop(SLICES, *path)
        await node.bench.wipe()
        await until(lambda: is_there(node, {WHOLE, "gpu-0000-11-00-0"}))
        assert publisher.state.whole_only


async def test_without_counters_a_card_that_is_held_in_another_form_is_kept_back(
    node: Node,
) -> None:
    node.prepared = Prepared(frozenset({MIG}), made=frozenset({MIG}))
    for path in COUNTERS:
        node.bench.api.faults.drop(SLICES, *path)
    async with node.offering():
        assert await node.free() == {"gpu-0000-11-00-0"}
        assert set(await node.devices()) == {WHOLE, "gpu-0000-11-00-0"}


@pytest.mark.parametrize("version", ["v1.36.0", "v1.36.1", "v1.35.4"])
async def test_c56_an_old_kubernetes_gets_whole_gpus_only(node: Node, version: str) -> None:
    node.bench.api.git_version = version
    async with node.offering() as (made, publisher):
        found = await node.devices()
        assert set(found) == {WHOLE, "gpu-0000-11-00-0"}
        assert all(set(raw) == {"name", "attributes", "capacity"} for raw in found.values())
        assert made.wanted.source == "Kubernetes"
        assert "only whole GPUs" in made.problems[0]
        assert not publisher.state.whole_only


async def test_c56_an_upgrade_of_the_server_adds_forms_and_moves_no_name(node: Node) -> None:
    node.bench.api.git_version = "v1.35.4"
    async with node.offering():
        (before,) = await node.bench.slices()
        node.bench.api.git_version = "v1.37.2"
        await until(lambda: has(node, MIG))
        after = await node.bench.slices()
        pools = [each["spec"]["pool"] for each in after]
        assert all(pool == pools[0] for pool in pools)
        assert pools[0]["generation"] > before["spec"]["pool"]["generation"]
        assert pools[0]["resourceSliceCount"] == len(after)
        assert not any(set(each["spec"]) >= {"devices", "sharedCounters"} for each in after)
        old = {raw["name"]: raw["attributes"] for raw in before["spec"]["devices"]}
        new = {name: raw["attributes"] for name, raw in (await node.devices()).items()}
        assert old.items() <= new.items()


async def test_a_kubernetes_that_is_too_old_gets_nothing_and_is_told_why(node: Node) -> None:
    node.bench.api.git_version = "v1.34.2"
    own = node.bench.own_node()
    publisher = node.bench.publisher(node=own)
    recorder = EventRecorder(node.bench.api, DRIVER, NODE)
    made = Offering(node.bench.api, publisher, own, driver=DRIVER, recorder=recorder, interval=0.02)
    publisher.allow(True)
    made.show(TWO)
    async with running(publisher, recorder, made):
        await until(lambda: any("older than 1.35" in problem for problem in made.problems))
        assert await node.bench.slices() == []
        node.bench.api.git_version = "v1.37.2"
        await until(lambda: has(node, WHOLE))


async def ever_published(node: Node) -> set[str]:
    """The names in every slice that was ever stored."""
    found: set[str] = set()
    stream = node.bench.api.watch(SLICES, resource_version="1")
    end = int(node.bench.api.resource_version)
    async for event in stream:
        found |= {device["name"] for device in event.object["spec"].get("devices", ())}
        if int(event.object["metadata"]["resourceVersion"]) >= end:
            break
    await stream.aclose()
    return found
