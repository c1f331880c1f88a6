"""The health of devices over real sockets, in both versions of the stream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoon.errors import KubeletError
from dragoon.health.reports import Board, DeviceHealth, Report, State
from dragoon.kubelet import rpc
from dragoon.kubelet.client import open_channel, watch_health
from dragoon.kubelet.healthstream import HEALTH_VERSIONS, MESSAGE_BYTES, HealthVersion
from dragoon.kubelet.serving import KubeletPlugin
from testbed.waiting import PATIENCE
from tests.scenario.kubelet.bed import info_at, kubelet, plugin, until
from tests.unit.kubelet.preparers import ScriptedPreparer

WELL = Report(
    "n1/gpu", (DeviceHealth("gpu-a", State.HEALTHY), DeviceHealth("gpu-b", State.HEALTHY))
)
ILL = Report(
    "n1/gpu",
    (
        DeviceHealth("gpu-a", State.UNHEALTHY, "XID 79: the GPU has fallen off the bus"),
        DeviceHealth("gpu-b", State.UNKNOWN, "the driver does not answer"),
    ),
)
versions = pytest.mark.parametrize("version", HEALTH_VERSIONS, ids=lambda v: v.advertised)


@asynccontextmanager
async def following(
    served: KubeletPlugin, version: HealthVersion
) -> AsyncIterator[AsyncIterator[Report]]:
    async with (
        open_channel(served.paths.service) as channel,
        aclosing(watch_health(channel, version)) as reports,
    ):
        yield reports


async def within(reports: AsyncIterator[Report]) -> Report:
    return await asyncio.wait_for(anext(reports), PATIENCE)


@versions
async def test_everything_is_said_at_once_and_every_change_as_it_comes(
    root: Path, preparer: ScriptedPreparer, version: HealthVersion
) -> None:
    board = Board()
    board.show(WELL)
    async with plugin(preparer, root, health=board, health_repeat=3600) as served:
        async with following(served, version) as reports:
            assert await within(reports) == WELL
            board.show(ILL)
            assert await within(reports) == ILL
            assert served.health_streams == 1
        await until(lambda: served.health_streams == 0)


@versions
async def test_the_same_is_said_again_within_the_lease(
    root: Path, preparer: ScriptedPreparer, version: HealthVersion
) -> None:
    board = Board()
    board.show(WELL)
    served = plugin(preparer, root, health=board, health_repeat=0.02)
    async with served, following(served, version) as reports:
        assert [await within(reports) for _ in range(3)] == [WELL, WELL, WELL]


async def test_a_stream_that_opens_before_anything_is_known_waits_for_it(
    root: Path, preparer: ScriptedPreparer
) -> None:
    board = Board()
    served = plugin(preparer, root, health=board, health_repeat=0.01)
    async with served, following(served, HEALTH_VERSIONS[0]) as reports:
        first = asyncio.ensure_future(anext(reports))
        await until(lambda: served.health_streams == 1)
        board.show(ILL)
        assert await first == ILL


async def raw(served: KubeletPlugin, version: HealthVersion) -> Any:
    """The first message as it is on the wire."""
    async with open_channel(served.paths.service) as channel:
        request = version.wire.NodeWatchResourcesRequest()
        call = rpc.stream(channel, version.service, "NodeWatchResources", request)
        first = await call.read()
        call.cancel()
        return first


@versions
async def test_time_lease_and_length_of_messages_are_the_kubelets(
    root: Path, preparer: ScriptedPreparer, version: HealthVersion
) -> None:
    board = Board(checked=lambda: 1700000000.9)
    long = "ä" * MESSAGE_BYTES
    board.show(Report("p", (DeviceHealth("gpu-a", State.UNHEALTHY, long),)))
    async with plugin(preparer, root, health=board) as served:
        (entry,) = (await raw(served, version)).devices
    assert (entry.device.pool_name, entry.device.device_name) == ("p", "gpu-a")
    assert entry.health == version.wire.UNHEALTHY
    assert (entry.last_updated_time, entry.health_check_timeout_seconds) == (1700000000, 30)
    assert entry.message == "ä" * (MESSAGE_BYTES // 2)


async def test_the_stream_is_offered_to_the_kubelet_only_where_there_is_one(
    root: Path, preparer: ScriptedPreparer
) -> None:
    for board, expected in (
        (None, ("v1.DRAPlugin", "v1beta1.DRAPlugin")),
        (
            Board(),
            (
                "v1.DRAPlugin",
                "v1beta1.DRAPlugin",
                "v1.DRAResourceHealth",
                "v1alpha1.DRAResourceHealth",
            ),
        ),
    ):
        served = plugin(preparer, root, health=board)
        async with served:
            assert (await info_at(served.paths.registration)).versions == expected


async def test_a_kubelet_that_knows_no_health_registers_all_the_same(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root, health=Board()) as served, kubelet(root):
        await asyncio.wait_for(served.wait_registered(), PATIENCE)


async def test_without_a_board_the_method_is_not_there(
    root: Path, preparer: ScriptedPreparer
) -> None:
    served = plugin(preparer, root, hangup_seconds=0.05)
    async with served, following(served, HEALTH_VERSIONS[0]) as reports:
        with pytest.raises(KubeletError, match="UNIMPLEMENTED"):
            await within(reports)


async def test_two_kubelets_follow_side_by_side(root: Path, preparer: ScriptedPreparer) -> None:
    board = Board()
    board.show(WELL)
    served = plugin(preparer, root, health=board, health_repeat=3600)
    async with (
        served,
        following(served, HEALTH_VERSIONS[0]) as first,
        following(served, HEALTH_VERSIONS[1]) as second,
    ):
        assert await within(first) == await within(second) == WELL
        board.show(ILL)
        assert await within(first) == await within(second) == ILL


async def test_a_stop_ends_the_stream(root: Path, preparer: ScriptedPreparer) -> None:
    board = Board()
    board.show(WELL)
    served = plugin(preparer, root, health=board, health_repeat=3600, hangup_seconds=0.05)
    await served.start()
    async with following(served, HEALTH_VERSIONS[0]) as reports:
        await within(reports)
        await served.stop()
        with pytest.raises(KubeletError):
            await within(reports)
    await until(lambda: served.health_streams == 0)
