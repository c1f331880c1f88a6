"""Prepare and unprepare over real sockets: at once, cut off, failing in part."""

import asyncio
from pathlib import Path

import pytest

from dragoon.errors import DeviceBusyError, KubeletError
from dragoon.kubelet.client import DraClient
from dragoon.kubelet.messages import DRA_VERSIONS
from testbed.waiting import PATIENCE
from tests.scenario.kubelet.bed import DRIVER, kubelet, plugin, until
from tests.unit.kubelet.preparers import ScriptedPreparer, claim

V1 = DRA_VERSIONS[0]


async def test_all_claims_of_a_pod_go_in_one_call_and_ids_come_back_per_request(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root), kubelet(root) as node:
        await node.wait_registered(DRIVER)
        prepared = await node.prepare(DRIVER, [claim("a"), claim("b")])
        assert {uid: [d.device for d in found] for uid, found in prepared.items()} == {
            "a": ["gpu-a"],
            "b": ["gpu-b"],
        }
        assert node.cdi_ids("b", "g") == ("gpu.dragoon.dev/claim=gpu-b",)
        assert node.cdi_ids("b", "no-such-request") == ()


async def test_a_failed_claim_fails_the_pod_and_the_other_claim_has_its_devices(
    root: Path, preparer: ScriptedPreparer
) -> None:
    preparer.answers["b"] = DeviceBusyError("gpu-0 is held by default/x (x)")
    async with plugin(preparer, root) as served, kubelet(root) as node:
        await served.wait_registered()
        with pytest.raises(KubeletError, match=r"default/claim-b \(b\): DeviceBusy: gpu-0 is held"):
            await node.prepare(DRIVER, [claim("a"), claim("b")])
        async with DraClient(served.paths.service, V1) as client:
            answers = await client.prepare([claim("a"), claim("b")])
        assert not answers["a"].error
        assert len(answers["a"].devices) == 1
        assert answers["b"].error.startswith("DeviceBusy")
        # The kubelet unprepares what it asked for, also what failed.
        await node.unprepare(DRIVER, [claim("a"), claim("b")])
        assert sorted(preparer.calls[-2:]) == [("unprepare", "a"), ("unprepare", "b")]


async def test_unknown_claims_are_unprepared_with_success(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with (
        plugin(preparer, root) as served,
        DraClient(served.paths.service, V1) as client,
    ):
        answers = await client.unprepare([claim("never-seen")])
    assert answers["never-seen"].error == ""


async def test_point_06_an_unprepare_is_served_while_a_prepare_waits_for_it(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root), kubelet(root) as node:
        await node.wait_registered(DRIVER)
        await node.prepare(DRIVER, [claim("old")])
        preparer.begun.clear()
        preparer.gates["new"] = preparer.begun["old"]  # opened by the unprepare of the old claim
        waiting = asyncio.create_task(node.prepare(DRIVER, [claim("new")]))
        await preparer.begun["new"].wait()
        assert not waiting.done()
        async with asyncio.timeout(PATIENCE):
            await node.unprepare(DRIVER, [claim("old")])
            await waiting


async def test_point_07_a_call_past_its_deadline_is_cut_off_and_the_next_one_works(
    root: Path, preparer: ScriptedPreparer
) -> None:
    preparer.gates["a"] = asyncio.Event()
    async with (
        plugin(preparer, root) as served,
        DraClient(served.paths.service, V1) as client,
    ):
        # On a busy machine a short call can be over before the server has begun with it.
        for seconds in (0.2, 2.0, 20.0):
            with pytest.raises(KubeletError, match="DEADLINE_EXCEEDED"):
                await client.prepare([claim("a"), claim("b")], timeout=seconds)
            if preparer.begun["a"].is_set():
                break
        # A call that was over before may have been begun with after all: it is cut off, too.
        await until(lambda: "a" in preparer.cut_off)
        preparer.gates["a"].set()
        answers = await client.prepare([claim("a"), claim("b")])
    assert [answers[uid].error for uid in ("a", "b")] == ["", ""]
    assert set(preparer.cut_off) == {"a"}


async def test_point_07_a_kubelet_that_dies_in_a_call_asks_again_after_its_restart(
    root: Path, preparer: ScriptedPreparer
) -> None:
    preparer.gates["a"] = asyncio.Event()
    # The error that the test holds holds the dead kubelet's connection, so nobody hangs up.
    async with plugin(preparer, root, hangup_seconds=0.1):
        async with kubelet(root) as node:
            await node.wait_registered(DRIVER)
            call = asyncio.create_task(node.prepare(DRIVER, [claim("a")]))
            await preparer.begun["a"].wait()
        with pytest.raises(KubeletError, match="the connection was closed"):
            await call
        preparer.gates["a"].set()
        async with kubelet(root) as node:
            await node.wait_registered(DRIVER)
            assert (await node.prepare(DRIVER, [claim("a")]))["a"]
    assert preparer.calls == [("prepare", "a")] * 2


async def test_point_08_two_pods_that_share_a_claim_are_answered_both(
    root: Path, preparer: ScriptedPreparer
) -> None:
    preparer.gates["a"] = asyncio.Event()
    async with plugin(preparer, root), kubelet(root) as node:
        await node.wait_registered(DRIVER)
        first = asyncio.create_task(node.prepare(DRIVER, [claim("a")]))
        second = asyncio.create_task(node.prepare(DRIVER, [claim("a")]))
        await until(lambda: len(preparer.calls) == 2)
        preparer.gates["a"].set()
        assert await first == await second
        await node.prepare(DRIVER, [claim("a")])  # a later pod causes no call
    assert preparer.calls == [("prepare", "a")] * 2


async def test_a_claim_with_the_name_of_one_still_here_waits_for_its_unprepare(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root), kubelet(root) as node:
        await node.wait_registered(DRIVER)
        await node.prepare(DRIVER, [claim("old", "train")])
        with pytest.raises(KubeletError, match=r"default/train \(old\) still exists"):
            await node.prepare(DRIVER, [claim("new", "train")])
        await node.unprepare(DRIVER, [claim("old", "train")])
        await node.prepare(DRIVER, [claim("new", "train")])
    assert preparer.calls == [("prepare", "old"), ("unprepare", "old"), ("prepare", "new")]


async def test_a_failed_unprepare_is_kept_and_tried_again(
    root: Path, preparer: ScriptedPreparer
) -> None:
    preparer.failing_unprepare["a"] = DeviceBusyError("a process still uses gpu-a")
    async with plugin(preparer, root), kubelet(root) as node:
        await node.wait_registered(DRIVER)
        await node.prepare(DRIVER, [claim("a")])
        with pytest.raises(KubeletError, match="a process still uses gpu-a"):
            await node.unprepare(DRIVER, [claim("a")])
        assert node.cdi_ids("a")
        preparer.failing_unprepare.clear()
        await node.unprepare(DRIVER, [claim("a")])
        assert not node.cdi_ids("a")


async def test_a_driver_that_is_not_registered_cannot_be_called(root: Path) -> None:
    async with kubelet(root) as node:
        with pytest.raises(KubeletError, match=f"DRA driver {DRIVER} is not registered"):
            await node.prepare(DRIVER, [claim("a")])
    async with kubelet(root) as node:
        await node.unprepare(DRIVER, [claim("a")])  # never recorded, so nothing to do
