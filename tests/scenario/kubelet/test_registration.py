"""Registration over real sockets: who is told what, when, and what a restart does."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import grpc
import pytest

from dragoon.app.config import PluginConfig
from dragoon.app.evidence.node import sockets
from dragoon.diagnose.checking.evidence import PluginSocket
from dragoon.errors import KubeletError
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import SLICES
from dragoon.kubelet.client import get_info, notify, open_channel
from dragoon.kubelet.messages import DRA_VERSIONS, GET_INFO_SECONDS
from dragoon.kubelet.wire import plugin_registration_v1_pb2
from testbed.waiting import PATIENCE
from tests.scenario.kubelet.bed import (
    DRIVER,
    UID_A,
    dead_socket,
    files,
    info_at,
    kubelet,
    plugin,
    until,
    wipe,
)
from tests.unit.kubelet.preparers import ScriptedPreparer, claim

HOG_SECONDS = 0.02
"""How long at a time a busy loop is away."""


def ask_from_outside(path: Path) -> None:
    """GetInfo by a client with a thread of its own."""
    with grpc.insecure_channel(f"unix:{path}") as channel:
        method = channel.unary_unary(
            "/pluginregistration.Registration/GetInfo",
            request_serializer=plugin_registration_v1_pb2.InfoRequest.SerializeToString,
            response_deserializer=plugin_registration_v1_pb2.PluginInfo.FromString,
        )
        info = method(plugin_registration_v1_pb2.InfoRequest(), timeout=60)
        assert info.name == DRIVER


async def test_the_kubelet_finds_asks_and_notifies_the_plugin(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root) as served, kubelet(root) as node:
        async with asyncio.timeout(PATIENCE):
            await node.wait_registered(DRIVER)
            await served.wait_registered()
        assert served.registered
        info = await info_at(served.paths.registration)
    assert info.type == "DRAPlugin"
    assert info.endpoint == served.paths.service
    assert info.versions == ("v1.DRAPlugin", "v1beta1.DRAPlugin")


async def test_point_04_and_11_serving_and_being_asked_is_not_yet_registered(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root) as served, open_channel(served.paths.registration) as channel:
        await get_info(channel, timeout=PATIENCE)
        assert not served.registered
        assert "not notified" in served.registration.reason
        await notify(channel, "wrong version")
        assert not served.registered
        assert "wrong version" in served.registration.reason
        await notify(channel)
        assert served.registered


async def test_get_info_keeps_the_kubelets_deadline_while_the_loop_is_busy(
    root: Path, preparer: ScriptedPreparer
) -> None:
    held = [claim(f"c{number}") for number in range(32)]
    preparer.gates = {ref.uid: asyncio.Event() for ref in held}
    stop = asyncio.Event()
    turns = 0

    async def hog() -> None:
        nonlocal turns
        while not stop.is_set():
            begin = time.monotonic()
            while time.monotonic() - begin < HOG_SECONDS:
                pass
            turns += 1
            await asyncio.sleep(0)

    async with plugin(preparer, root) as served, kubelet(root) as node:
        await node.wait_registered(DRIVER)
        waiting = [asyncio.create_task(node.prepare(DRIVER, [ref])) for ref in held]
        for ref in held:
            await preparer.begun[ref.uid].wait()
        hogging = asyncio.create_task(hog())
        took = []
        for _ in range(3):
            before = turns
            await asyncio.to_thread(ask_from_outside, served.paths.registration)
            took.append(turns - before)
        stop.set()
        await hogging
        for gate in preparer.gates.values():
            gate.set()
        await asyncio.gather(*waiting)
    # In turns of the busy loop and not in seconds, which say how busy the machine is.
    assert max(took) * HOG_SECONDS < GET_INFO_SECONDS


async def test_a_restarted_kubelet_registers_us_again_and_prepares_nothing_again(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root) as served:
        async with kubelet(root) as node:
            await served.wait_registered()
            await node.prepare(DRIVER, [claim("a")])
        async with kubelet(root) as node:
            await until(lambda: served.registration.notified == 2)
            assert served.registered
            assert node.cdi_ids("a", "g") == ("gpu.dragoon.dev/claim=gpu-a",)
            assert preparer.calls == [("prepare", "a")]
            await node.prepare(DRIVER, [claim("a")])  # a new sandbox after the restart
            await node.prepare(DRIVER, [claim("a")])  # and another one
            assert preparer.calls == [("prepare", "a")] * 2
            await node.unprepare(DRIVER, [claim("a")])
            await node.unprepare(DRIVER, [claim("a")])
            assert preparer.calls[2:] == [("unprepare", "a")]
            assert node.cdi_ids("a") == ()


@pytest.mark.parametrize("version", DRA_VERSIONS, ids=lambda v: v.advertised)
async def test_a_kubelet_that_knows_one_version_gets_its_devices(
    root: Path, preparer: ScriptedPreparer, version: object
) -> None:
    async with plugin(preparer, root), kubelet(root, versions=[version]) as node:
        await node.wait_registered(DRIVER)
        prepared = await node.prepare(DRIVER, [claim("a")])
        assert [found.device for found in prepared["a"]] == ["gpu-a"]


async def test_a_kubelet_that_knows_no_version_of_ours_says_so(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root) as served, kubelet(root, versions=[]) as node:
        await until(lambda: "refused" in served.registration.reason)
        assert "v1.DRAPlugin, v1beta1.DRAPlugin" in served.registration.reason
        with pytest.raises(KubeletError, match="is not registered"):
            await node.prepare(DRIVER, [claim("a")])


async def test_a_removed_registration_socket_is_put_back_and_registered_again(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root, check_seconds=0.05) as served, kubelet(root):
        await served.wait_registered()
        states = served.registration_changes()
        assert (await anext(states)).registered
        served.paths.registration.unlink()
        async with asyncio.timeout(PATIENCE):
            lost = await anext(states)
            assert (lost.registered, lost.reason) == (
                False,
                "the registration socket was removed or replaced",
            )
            await served.wait_registered()
        await states.aclose()
        assert served.registration.notified == 2
        await served.self_call()


async def test_a_wiped_kubelet_root_gets_its_sockets_back(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root, check_seconds=0.05) as served:
        async with kubelet(root):
            await served.wait_registered()
        wipe(root)
        async with kubelet(root) as node:
            await until(lambda: served.registration.notified == 2)
            await node.prepare(DRIVER, [claim("a")])


async def test_a_removed_service_socket_is_put_back_and_the_kubelet_calls_again(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root, check_seconds=0.05) as served, kubelet(root) as node:
        await served.wait_registered()
        await node.prepare(DRIVER, [claim("a")])
        served.paths.service.unlink()
        await until(served.paths.service.exists)
        await served.self_call()
        await node.unprepare(DRIVER, [claim("a")])
        assert served.registration.notified == 1


async def test_dead_sockets_of_an_earlier_instance_are_gone_after_the_start(
    root: Path, preparer: ScriptedPreparer
) -> None:
    registration = dead_socket(root / "plugins_registry" / f"{DRIVER}-{UID_A}-reg.sock")
    service = dead_socket(root / "plugins" / DRIVER / f"dra-{UID_A}.sock")
    async with plugin(preparer, root) as served, kubelet(root):
        await served.wait_registered()
        assert not registration.exists()
        assert not service.exists()


async def test_a_restart_in_the_same_pod_replaces_its_own_dead_sockets(
    root: Path, preparer: ScriptedPreparer
) -> None:
    dead_socket(root / "plugins_registry" / f"{DRIVER}-{UID_A}-reg.sock")
    dead_socket(root / "plugins" / DRIVER / f"dra-{UID_A}.sock")
    async with kubelet(root) as node, plugin(preparer, root, instance_uid=UID_A) as served:
        await served.wait_registered()
        await node.prepare(DRIVER, [claim("a")])
    assert files(root) == []


async def test_a_self_call_fails_when_a_socket_does_not_answer(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root, check_seconds=3600) as served:
        await served.self_call()
        served.paths.service.unlink()
        with pytest.raises(KubeletError, match="NodePrepareResources: UNAVAILABLE"):
            await served.self_call()
        await served.repair()
        await served.self_call()
    assert preparer.calls == []


async def test_a_machine_that_stands_still_longer_than_a_kubelet_waits_is_no_dead_plugin(
    root: Path, preparer: ScriptedPreparer
) -> None:
    config = PluginConfig(node_name="n1", kubelet_root=str(root))
    async with plugin(preparer, root, check_seconds=3600) as served:
        calling = asyncio.gather(served.self_call(), sockets(config))
        await asyncio.sleep(0)  # GetInfo is under way
        time.sleep(GET_INFO_SECONDS + 0.2)  # noqa: ASYNC251 - everything stands still
        _, found = await calling
    assert found == (PluginSocket(served.paths.registration, ""),)


async def test_a_restarted_kubelet_deletes_the_slices_of_its_node_and_no_others(
    root: Path,
) -> None:
    api = MemoryApi()
    for name, node_name in (("1", "node-a"), ("2", "node-a"), ("3", "node-b")):
        await api.create(SLICES, slice_of(name, node_name))
    before = (await api.list(SLICES)).resource_version
    async with (
        kubelet(root, api=api, node="node-a"),
        asyncio.timeout(PATIENCE),
        aclosing(api.watch(SLICES, resource_version=before)) as events,
    ):
        deleted = {(await anext(events)).object["metadata"]["name"] for _ in range(2)}
    assert deleted == {"1", "2"}
    assert [item["metadata"]["name"] for item in (await api.list(SLICES)).items] == ["3"]


def slice_of(name: str, node_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [],
        },
    }


async def test_a_killed_plugin_is_not_called_and_its_successor_is(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with kubelet(root) as node:
        killed = plugin_process(root)
        await node.wait_registered(DRIVER)
        await node.prepare(DRIVER, [claim("a")])
        killed.kill()
        await asyncio.to_thread(killed.wait)
        left = files(root)
        assert len(left) == 2
        async with plugin(preparer, root) as served, asyncio.timeout(PATIENCE):
            await node.wait_registered(DRIVER, served.paths.service.__eq__)
            await node.unprepare(DRIVER, [claim("a")])
            assert not set(left) & set(files(root))
    assert preparer.calls == [("unprepare", "a")]


def plugin_process(root: Path) -> subprocess.Popen[bytes]:
    """A plugin in a process of its own, that serves until it is killed."""
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from tests.scenario.kubelet.bed import plugin\n"
        "from tests.unit.kubelet.preparers import ScriptedPreparer\n"
        "async def main():\n"
        "    async with plugin(ScriptedPreparer(), Path(sys.argv[1])):\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", program, str(root)], env=environment)


async def test_a_socket_that_says_nothing_does_not_keep_the_kubelet_from_us(
    root: Path, preparer: ScriptedPreparer
) -> None:
    (root / "plugins_registry").mkdir()
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(root / "plugins_registry" / "a-mute.sock"))
        mute.listen()
        async with kubelet(root), plugin(preparer, root) as served, asyncio.timeout(PATIENCE):
            await served.wait_registered()


async def test_a_kubelet_root_that_is_not_there_is_a_clear_error(
    root: Path, preparer: ScriptedPreparer
) -> None:
    with pytest.raises(KubeletError, match=r"kubelet root: .*/nowhere is not a folder"):
        await plugin(preparer, root / "nowhere").start()
    assert files(root) == []


async def test_a_path_that_is_too_long_is_refused_before_anything_is_made(
    root: Path, preparer: ScriptedPreparer
) -> None:
    deep = root / ("d" * 60)
    deep.mkdir()
    with pytest.raises(KubeletError, match="allowed are 107"):
        plugin(preparer, deep)
    assert list(deep.iterdir()) == []
