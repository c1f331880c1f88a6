"""From hardware to slices: cards that are lost, domains that stay, other owners (C52)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from dragoon.gpu.model import Inventory, LostGpu
from dragoon.kube.events import EventRecorder
from dragoon.kube.port import EVENTS, NODES, SLICES
from dragoon.publish.holding import Journal, Prepared, nothing_prepared
from dragoon.publish.looking import Sources
from dragoon.publish.offering import Offering
from dragoon.publish.publisher import Publisher
from tests.scenario.publish.bench import Bench, quiet, running, until
from tests.unit.publish.nodes import DRIVER, NODE, attribute, gpu, inventory, machine

H100 = machine("dgx-h100")
NEVER = 3600.0
"""An interval between two looks that no test waits for."""


@contextlib.asynccontextmanager
async def offering(
    bench: Bench,
    found: Inventory,
    interval: float = 0.02,
    *,
    watched: bool = True,
    journal: Journal = nothing_prepared,
) -> AsyncIterator[tuple[Offering, Publisher]]:
    """A node that offers what was found, and has published it. watched: its Node is followed."""
    node = bench.own_node()
    publisher = bench.publisher(node=node)
    recorder = EventRecorder(bench.api, DRIVER, NODE)
    made = Offering(
        bench.api,
        publisher,
        node,
        driver=DRIVER,
        recorder=recorder,
        sources=Sources(journal=journal),
        interval=interval,
    )
    publisher.allow(True)
    made.show(found)
    async with running(publisher, recorder, made, *([node] if watched else [])):
        await publisher.published()
        yield made, publisher


async def devices(bench: Bench) -> dict[str, Any]:
    return {
        device["name"]: device
        for slice_ in await bench.slices()
        for device in slice_["spec"].get("devices", ())
    }


async def taints(bench: Bench) -> dict[str, list[str]]:
    """The keys of the taints of each device."""
    return {
        name: [taint["key"] for taint in device.get("taints", ())]
        for name, device in (await devices(bench)).items()
    }


async def domain(bench: Bench) -> set[str]:
    return {attribute(d, "nvlinkDomain") for d in (await devices(bench)).values()} - {None}


def without(found: Inventory, number: int) -> Inventory:
    """The same machine after one card died."""
    card = found.gpus[number]
    rest = tuple(g for g in found.gpus if g is not card)
    return replace(found, gpus=rest, lost=(LostGpu(card.address, "no answer"),))


async def set_node(bench: Bench, **changes: Any) -> None:
    node = await bench.api.get(NODES, NODE)
    labels = changes.pop("labels", None)
    if labels is not None:
        await bench.api.patch(NODES, NODE, {"metadata": {"labels": labels}})
    if changes:
        patch = {"status": {"allocatable": changes.pop("allocatable")}}
        await bench.api.patch(NODES, node["metadata"]["name"], patch, subresource="status")


async def test_a_machine_is_published_whole(bench: Bench) -> None:
    async with offering(bench, H100):
        assert len(await devices(bench)) == 8
        assert len(await domain(bench)) == 1


@pytest.mark.parametrize("restart", [False, True], ids=["same process", "after a restart"])
async def test_a_card_that_dies_keeps_its_device_and_renames_no_domain(
    bench: Bench, *, restart: bool
) -> None:
    async with offering(bench, H100) as (made, _):
        before, value = await devices(bench), await domain(bench)
        if not restart:
            made.show(without(H100, 0))
            await until(lambda: _dead(bench))
    async with offering(bench, without(H100, 0)):
        await until(lambda: _dead(bench))
        after = await devices(bench)
        assert await domain(bench) == value
    dead = "gpu-0000-11-00-0"
    expected = {k: v for k, v in before[dead]["attributes"].items() if k != "nvlinkDomain"}
    assert after[dead]["attributes"] == expected
    assert after[dead]["capacity"] == before[dead]["capacity"]
    assert {k: v for k, v in after.items() if k != dead} == {
        k: v for k, v in before.items() if k != dead
    }


async def _dead(bench: Bench) -> bool:
    found = await taints(bench)
    return [name for name, keys in found.items() if keys] == ["gpu-0000-11-00-0"]


async def test_a_card_that_comes_back_is_as_before(bench: Bench) -> None:
    async with offering(bench, H100) as (made, _):
        before = await devices(bench)
        made.show(without(H100, 0))
        await until(lambda: _dead(bench))
        made.show(H100)

        async def healed() -> bool:
            return await devices(bench) == before

        await until(healed)


async def test_c52_cards_of_a_device_plugin_are_tainted_before_they_are_published(
    bench: Bench,
) -> None:
    await set_node(bench, allocatable={"nvidia.com/gpu": "2"})
    async with offering(bench, inventory()):
        assert set(map(tuple, (await taints(bench)).values())) == {("dragoon.dev/other-owner",)}
        (event,) = await _events(bench)
        assert event["type"] == "Warning"
        assert event["regarding"]["kind"] == "Node"
        assert "nvidia.com/gpu: 2" in event["note"]


async def test_c52_an_owner_that_comes_is_seen_and_one_that_goes_leaves_no_trace(
    bench: Bench,
) -> None:
    async with offering(bench, inventory(), NEVER) as (made, _):
        before = await devices(bench)
        await set_node(bench, allocatable={"nvidia.com/gpu": "2"})
        await until(lambda: _tainted(bench))
        assert [owner.name for owner in made.owners] == ["nvidia.com/gpu"]
        await set_node(bench, allocatable={"nvidia.com/gpu": "0"})

        async def clean() -> bool:
            return await devices(bench) == before

        await until(clean)
        assert made.owners == ()
        assert len(await _events(bench)) == 1


async def test_c52_another_driver_on_one_card_taints_that_card(bench: Bench) -> None:
    spec = {
        "driver": "gpu.nvidia.com",
        "nodeName": NODE,
        "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-1", "attributes": {"uuid": {"string": gpu(1).uuid}}}],
    }
    await bench.api.create(SLICES, {"metadata": {"name": "theirs"}, "spec": spec})
    async with offering(bench, inventory()):
        assert await taints(bench) == {
            "gpu-0000-10-00-0": [],
            "gpu-0000-11-00-0": ["dragoon.dev/other-owner"],
        }


@pytest.mark.parametrize(
    ("interval", "watched"), [(NEVER, True), (0.02, False)], ids=["by the watch", "by the look"]
)
async def test_c52_a_node_that_accepts_two_owners_is_not_tainted(
    bench: Bench, interval: float, *, watched: bool
) -> None:
    await set_node(bench, allocatable={"nvidia.com/gpu": "2"})
    async with offering(bench, inventory(), interval, watched=watched):
        assert await _tainted(bench)
        await set_node(bench, labels={"dragoon.dev/coexist": "true"})
        await until(lambda: _clean(bench))


async def test_a_look_that_dies_of_a_surprise_is_made_again_by_the_next_run(bench: Bench) -> None:
    node = bench.own_node()
    publisher = bench.publisher(node=node)
    recorder = EventRecorder(bench.api, DRIVER, NODE)
    made = Offering(bench.api, publisher, node, driver=DRIVER, recorder=recorder, interval=0.02)
    publisher.allow(True)
    made.show(inventory())
    async with running(publisher, node):
        life = asyncio.create_task(made.run())
        await publisher.published()
        bench.api.faults.fail(
            error=lambda: KeyError("metadata"), times=1, verb="get", resource=NODES
        )
        with pytest.raises(KeyError):
            await life
        await set_node(bench, allocatable={"nvidia.com/gpu": "2"})
        async with running(made):
            await until(lambda: _tainted(bench))


async def test_c52_a_card_found_while_the_api_is_away_is_tainted_too(bench: Bench) -> None:
    await set_node(bench, allocatable={"nvidia.com/gpu": "1"})
    async with offering(bench, inventory(gpu(0))) as (made, _):
        fault = bench.api.faults.fail(
            times=None, when=lambda call: call.resource == NODES or call.verb == "list"
        )
        made.show(inventory(gpu(0), gpu(1)))
        await until(lambda: fault.hits >= 2)
        fault.lift()
        await until(lambda: _count(bench, 2))
        assert await _tainted(bench)


async def test_nothing_is_offered_before_other_owners_were_looked_for(bench: Bench) -> None:
    await set_node(bench, allocatable={"nvidia.com/gpu": "2"})
    fault = bench.api.faults.fail(times=3, resource=NODES, verb="get")
    async with offering(bench, inventory()):
        assert fault.hits == 3
        assert await _tainted(bench)


async def test_only_what_matters_in_the_node_makes_it_look_again(bench: Bench) -> None:
    looks = 0

    async def journal() -> Prepared:
        nonlocal looks
        looks += 1
        return Prepared()

    await set_node(bench, labels={"dragoon.dev/gang-only": "true"})
    async with offering(bench, inventory(), NEVER, journal=journal):
        assert set(map(tuple, (await taints(bench)).values())) == {("dragoon.dev/gang-only",)}
        await set_node(bench, allocatable={"cpu": "8"}, labels={"example.com/zone": "a"})
        await quiet(bench)
        assert looks == 1
        await set_node(bench, labels={"dragoon.dev/gang-only": None})
        await until(lambda: _clean(bench))
        await quiet(bench)
        assert looks == 2


async def test_a_node_that_is_missing_is_looked_at_as_soon_as_it_is_there(bench: Bench) -> None:
    async with offering(bench, inventory(), NEVER):
        await bench.api.delete(NODES, NODE)
        await bench.node(allocatable={"nvidia.com/gpu": "2"})
        await until(lambda: _tainted(bench))


async def test_a_quiet_node_writes_nothing(bench: Bench) -> None:
    async with offering(bench, H100):
        before = len(bench.calls())
        looks = len(bench.calls("list"))
        await until(lambda: len(bench.calls("list")) >= looks + 5)
        assert len(bench.calls()) == before


async def _events(bench: Bench) -> list[Any]:
    found: list[Any] = []

    async def some() -> bool:
        found[:] = (await bench.api.list(EVENTS)).items
        return bool(found)

    await until(some)
    return found


async def _tainted(bench: Bench) -> bool:
    found = await taints(bench)
    return bool(found) and all(keys == ["dragoon.dev/other-owner"] for keys in found.values())


async def _clean(bench: Bench) -> bool:
    return not any((await taints(bench)).values())


async def _count(bench: Bench, number: int) -> bool:
    return len(await devices(bench)) == number
