"""Several instances and foreign files on one kubelet root."""

import asyncio
import os
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest

from dragoon.errors import KubeletError
from dragoon.kubelet.client import DraClient, get_info, notify, open_channel
from dragoon.kubelet.messages import DRA_VERSIONS
from dragoon.kubelet.registration import Registration
from dragoon.kubelet.socketserver import SocketServer
from testbed.waiting import PATIENCE
from tests.scenario.kubelet.bed import (
    DRIVER,
    UID_A,
    UID_B,
    files,
    info_at,
    kubelet,
    plugin,
    until,
)
from tests.unit.kubelet.preparers import ScriptedPreparer, claim


def server(path: Path, name: str) -> SocketServer:
    """A registration server that answers with its name."""
    return SocketServer(path, Registration(name, path, []).handlers())


async def name_at(path: Path) -> str:
    return (await info_at(path)).name


async def test_an_update_hands_over_without_a_failed_call(root: Path) -> None:
    old_preparer, new_preparer = ScriptedPreparer(), ScriptedPreparer()
    stop = asyncio.Event()
    done = 0

    async with kubelet(root) as node:
        old = plugin(old_preparer, root, instance_uid=UID_A)
        new = plugin(new_preparer, root, instance_uid=UID_B)
        await old.start()
        await old.wait_registered()

        async def pods() -> None:
            nonlocal done
            while not stop.is_set():
                await node.prepare(DRIVER, [claim(f"c{done}")])
                await node.unprepare(DRIVER, [claim(f"c{done}")])
                done += 1

        running = asyncio.create_task(pods())
        await until(lambda: done >= 5)
        await new.start()
        await new.wait_registered()
        await node.wait_registered(DRIVER, new.paths.service.__eq__)
        await old.stop()
        before = done
        await until(lambda: done >= before + 5)
        stop.set()
        await running
        assert new.registered
        assert not old.registered
        assert files(root) == [
            f"plugins/{DRIVER}/dra-{UID_B}.sock",
            f"plugins_registry/{DRIVER}-{UID_B}-reg.sock",
        ]
        await new.stop()
    assert old_preparer.calls
    assert files(root) == []


async def test_a_claim_prepared_by_one_instance_is_unprepared_by_the_newer(root: Path) -> None:
    old_preparer, new_preparer = ScriptedPreparer(), ScriptedPreparer()
    async with kubelet(root) as node, plugin(old_preparer, root) as old:
        await old.wait_registered()
        await node.prepare(DRIVER, [claim("a")])
        async with plugin(new_preparer, root) as new:
            await new.wait_registered()
            await node.wait_registered(DRIVER, new.paths.service.__eq__)
            await node.unprepare(DRIVER, [claim("a")])
        # The newer one is gone (a rolled back update): the older one serves again.
        await until(lambda: not new.registered)
        await node.prepare(DRIVER, [claim("b")])
    assert old_preparer.calls == [("prepare", "a"), ("prepare", "b")]
    assert new_preparer.calls == [("unprepare", "a")]


async def test_instances_without_a_uid_never_share_a_path(
    root: Path, preparer: ScriptedPreparer
) -> None:
    assert plugin(preparer, root).paths != plugin(preparer, root).paths


async def test_a_stop_lets_the_call_in_flight_finish(
    root: Path, preparer: ScriptedPreparer
) -> None:
    preparer.gates["a"] = asyncio.Event()
    async with kubelet(root) as node:
        served = plugin(preparer, root)
        await served.start()
        await served.wait_registered()
        call = asyncio.create_task(node.prepare(DRIVER, [claim("a")]))
        await preparer.begun["a"].wait()
        stopping = asyncio.create_task(served.stop())
        # Still offered: the kubelet would cut the call off if the registration went first.
        assert await name_at(served.paths.registration) == DRIVER
        preparer.gates["a"].set()
        assert (await call)["a"]
        async with asyncio.timeout(PATIENCE):
            await stopping
        await served.stop()
    assert files(root) == []


async def test_the_service_stays_until_the_kubelet_has_hung_up(
    root: Path, preparer: ScriptedPreparer
) -> None:
    served = plugin(preparer, root, hangup_seconds=600)
    await served.start()
    async with open_channel(served.paths.registration) as channel:
        await notify(channel)
    async with DraClient(served.paths.service, DRA_VERSIONS[0]) as kubelet_end:
        await kubelet_end.prepare([claim("a")])
        stopping = asyncio.create_task(served.stop())
        await until(lambda: not served.paths.registration.exists())
        assert not served.registered
        await kubelet_end.unprepare([claim("a")])
        assert not stopping.done()
    async with asyncio.timeout(PATIENCE):
        await stopping
    assert files(root) == []


async def test_a_kubelet_that_does_not_hang_up_ends_no_later_than_the_limit(
    root: Path, preparer: ScriptedPreparer
) -> None:
    served = plugin(preparer, root, hangup_seconds=0.2)
    await served.start()
    async with DraClient(served.paths.service, DRA_VERSIONS[0]) as kubelet_end:
        await kubelet_end.prepare([claim("a")])
        async with asyncio.timeout(PATIENCE):
            await served.stop()
    assert files(root) == []


async def test_a_call_that_never_ends_holds_a_stop_no_longer_than_the_limit(
    root: Path, preparer: ScriptedPreparer
) -> None:
    preparer.gates["a"] = asyncio.Event()
    served = plugin(preparer, root, drain_seconds=0.2, hangup_seconds=0.2)
    await served.start()
    async with DraClient(served.paths.service, DRA_VERSIONS[0]) as kubelet_end:
        call = asyncio.create_task(kubelet_end.prepare([claim("a")]))
        await preparer.begun["a"].wait()
        async with asyncio.timeout(PATIENCE):
            await served.stop()
        with pytest.raises(KubeletError):
            await call
    assert preparer.cut_off == ["a"]
    assert files(root) == []


async def test_a_stop_that_was_cut_off_can_be_finished(
    root: Path, preparer: ScriptedPreparer
) -> None:
    preparer.gates["a"] = asyncio.Event()
    served = plugin(preparer, root)
    await served.stop()  # not started yet: nothing to do
    await served.start()
    async with DraClient(served.paths.service, DRA_VERSIONS[0]) as kubelet_end:
        call = asyncio.create_task(kubelet_end.prepare([claim("a")]))
        await preparer.begun["a"].wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(served.stop(), 0.1)
        preparer.gates["a"].set()
        assert (await call)["a"].devices
    await served.stop()
    assert files(root) == []


async def test_point_12_stopping_removes_no_socket_of_another_server(root: Path) -> None:
    path = root / "x.sock"
    older, newer = server(path, "older"), server(path, "newer")
    await older.start()
    path.unlink()
    await newer.start()
    assert not older.intact()
    assert newer.intact()
    await older.stop()
    assert newer.intact()
    assert await name_at(path) == "newer"
    await newer.stop()
    assert files(root) == []


async def test_point_12_a_live_servers_path_is_not_taken_over(root: Path) -> None:
    path = root / "x.sock"
    older, newer = server(path, "older"), server(path, "newer")
    await older.start()
    with pytest.raises(KubeletError, match="another process serves on"):
        await newer.start()
    assert await name_at(path) == "older"
    assert files(root) == ["x.sock"]
    await newer.stop()
    assert older.intact()
    await older.stop()


async def test_a_path_taken_by_another_server_is_left_to_it_and_reported(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root, check_seconds=3600) as served, kubelet(root) as node:
        await served.wait_registered()
        path = served.paths.registration
        path.unlink()
        with socket.socket(socket.AF_UNIX) as intruder:
            intruder.bind(str(path))
            intruder.listen()
            with pytest.raises(KubeletError, match="another process serves on"):
                await served.repair()
            assert not served.registered
        await served.repair()  # the intruder has died: its path is ours again
        await served.wait_registered()
        await node.prepare(DRIVER, [claim("a")])


async def test_a_regular_file_in_the_way_is_a_clear_error_and_stays(
    root: Path, preparer: ScriptedPreparer
) -> None:
    served = plugin(preparer, root)
    served.paths.registration.parent.mkdir()
    served.paths.registration.write_text("precious")
    with pytest.raises(KubeletError, match="is in the way and not a socket"):
        await served.start()
    assert served.paths.registration.read_text() == "precious"
    assert files(root) == [str(served.paths.registration.relative_to(root))]
    served.paths.registration.unlink()
    async with kubelet(root), served, asyncio.timeout(PATIENCE):  # nothing is left that prevents it
        await served.wait_registered()
    async with kubelet(root), served, asyncio.timeout(PATIENCE):
        await until(lambda: served.registration.notified == 2)


async def test_sockets_are_for_their_owner_only_and_folders_closed(
    root: Path, preparer: ScriptedPreparer
) -> None:
    async with plugin(preparer, root) as served:
        for path in (served.paths.registration, served.paths.service):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o750


async def test_a_socket_is_seen_only_when_a_server_answers_behind_it(root: Path) -> None:
    path = root / "x.sock"

    def connect_at_first_sight() -> None:
        while not path.exists():
            pass
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(path))

    for _ in range(5):
        watching = asyncio.create_task(asyncio.to_thread(connect_at_first_sight))
        served = server(path, "x")
        await served.start()
        await watching
        await served.stop()


async def test_connections_are_counted_per_server(root: Path) -> None:
    one, two = server(root / "1.sock", "one"), server(root / "2.sock", "two")
    await one.start()
    await two.start()
    assert not one.has_connections()
    async with open_channel(root / "1.sock") as channel:
        await get_info(channel, timeout=PATIENCE)
        assert one.has_connections()
        assert not two.has_connections()
    await until(lambda: not one.has_connections())
    await one.stop()
    await two.stop()


ASKING = """
import asyncio, sys
from pathlib import Path
import grpc
from dragoon.kubelet.client import get_info, open_channel
async def main():
    async with open_channel(Path(sys.argv[1])) as channel:
        await get_info(channel, timeout=60)
        print("asked", flush=True)
        while channel.get_state() is grpc.ChannelConnectivity.READY:
            await asyncio.sleep(0.01)
asyncio.run(main())
"""


async def test_a_client_says_nothing_of_its_own_when_a_server_goes_while_it_stands_still(
    root: Path,
) -> None:
    """Else `dragoon demo` has lines of gRPC on stderr, on a machine that is busy enough."""
    served = server(root / "x.sock", "x")
    await served.start()
    asking = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ASKING, str(root / "x.sock")),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert asking.stdout is not None
    assert await asking.stdout.readline() == b"asked\n"
    asking.send_signal(signal.SIGSTOP)
    await served.stop()
    asking.send_signal(signal.SIGCONT)
    assert await asking.communicate() == (b"", b"")
    assert asking.returncode == 0
