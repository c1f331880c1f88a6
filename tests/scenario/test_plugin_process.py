"""`dragoon plugin` as a process: what its start refuses, and how it ends."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoon.errors import KubeletError
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.state import Effect, Fault
from dragoon.kube.serving import EmbeddedApi
from testbed.waiting import PATIENCE
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until


@pytest.fixture
async def api(bed: Bed) -> AsyncIterator[EmbeddedApi]:
    served = EmbeddedApi(bed.memory)
    await served.start()
    yield served
    await served.stop()


def command(bed: Bed, api: EmbeddedApi, *more: str) -> list[str]:
    kubeconfig = api.write_kubeconfig(bed.root / "kubeconfig")
    return [
        *(sys.executable, "-m", "dragoon", "plugin"),
        *("--node-name", NODE),
        *("--kubeconfig", str(kubeconfig)),
        *("--kubelet-root", str(bed.kubelet_root)),
        *("--cdi-root", str(bed.cdi_root)),
        *("--listen", "127.0.0.1:0"),
        *("--proc-root", str(bed.root / "proc")),
        *more,
    ]


async def ended(*arguments: str) -> tuple[int, str]:
    """Runs a command that must end by itself; its exit code and its stderr."""
    process = await asyncio.create_subprocess_exec(
        *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE):
            _, told = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return process.returncode, told.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_good_order(
    bed: Bed, api: EmbeddedApi, number: signal.Signals
) -> None:
    log = bed.root / "log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *command(bed, api, "--simulate", "dgx-h100"), stdout=out, stderr=out
        )
    try:
        async with bed.kubelet() as kubelet, asyncio.timeout(PATIENCE):
            await kubelet.wait_registered(DRIVER)
            (before,) = await bed.slices_become("published", bool)
            process.send_signal(number)
            assert await process.wait() == 0, log.read_text()
            assert await bed.slices() == (before,)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert not list(bed.kubelet_root.rglob("*.sock"))
    assert "Traceback" not in log.read_text()
    assert "stopping" in log.read_text()


async def test_a_card_that_hangs_does_not_keep_it_from_ending(bed: Bed, api: EmbeddedApi) -> None:
    state, log = bed.root / "gpus.json", bed.root / "log"
    arguments = command(bed, api, "--simulate", "dgx-h100", "--simulate-state", str(state))
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*arguments, stdout=out, stderr=out)
    try:
        async with bed.kubelet() as kubelet, asyncio.timeout(PATIENCE):
            await kubelet.wait_registered(DRIVER)
            await bed.slices_become("published", bool)
            fault = Fault("nvmlDeviceGetComputeRunningProcesses_v3", Effect.HANG, slot=0)
            Hardware(state).fail(fault)
            await until("told that it hangs", lambda: b"has not answered" in log.read_bytes())
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0, log.read_text()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_its_log_is_json_and_all_lines_of_a_call_have_one_claim_and_one_operation(
    bed: Bed, api: EmbeddedApi
) -> None:
    log = bed.root / "log"
    claim = await bed.allocated_claim("a", "gpu-0000-11-00-0")
    unknown = await bed.allocated_claim("b", "gpu-0000-ff-00-0")
    more = ("--simulate", "dgx-h100", "--proc-root", "/proc")
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *command(bed, api, *more), stdout=out, stderr=out
        )
    try:
        async with bed.kubelet() as kubelet, asyncio.timeout(PATIENCE):
            await kubelet.wait_registered(DRIVER)
            await kubelet.prepare(DRIVER, [claim])
            await kubelet.unprepare(DRIVER, [claim])
            with pytest.raises(KubeletError, match="UnknownDevice"):
                await kubelet.prepare(DRIVER, [unknown])
            process.send_signal(signal.SIGTERM)
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all({"timestamp", "level", "event", "logger"} <= set(line) for line in lines)
    of_calls = [line for line in lines if "operation" in line]
    events: dict[tuple[str, str], set[str]] = {}
    for line in of_calls:
        events.setdefault((line["claim_uid"], line["operation"]), set()).add(line["event"])
    assert sorted(events.values(), key=sorted) == [
        {"claim failed", "prepare failed"},
        {"prepared"},
        {"unprepared"},
    ]
    assert {uid for uid, _ in events} == {claim.uid, unknown.uid}


async def test_it_refuses_to_simulate_beside_a_real_driver(bed: Bed, api: EmbeddedApi) -> None:
    version = bed.root / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module")
    code, told = await ended(*command(bed, api, "--simulate", "dgx-h100"))
    assert code == 2
    assert "error: asked to simulate GPUs" in told
    assert "hint: " in told
    assert_nothing_is_left(bed)


async def test_an_unknown_machine_is_refused_with_the_names_of_those_there_are(
    bed: Bed, api: EmbeddedApi
) -> None:
    code, told = await ended(*command(bed, api, "--simulate", "dgx-h1000"))
    assert code == 2
    assert "found 'dgx-h1000'" in told
    assert "dgx-h100" in told
    assert_nothing_is_left(bed)


async def test_a_driver_name_over_63_characters_is_refused(bed: Bed, api: EmbeddedApi) -> None:
    code, told = await ended(*command(bed, api, "--simulate", "t4", "--driver-name", "a" * 64))
    assert code == 2
    assert "driver name: found" in told
    assert "at most 63" in told
    assert_nothing_is_left(bed)


async def test_a_broken_config_file_is_refused_with_file_and_field(
    bed: Bed, api: EmbeddedApi
) -> None:
    file = bed.root / "dragoon.yaml"
    file.write_text("inventorySecond: 5\n")
    code, told = await ended(*command(bed, api, "--simulate", "t4", "--config", str(file)))
    assert code == 2
    assert f"error: config file {file}: field inventorySecond: unknown" in told
    assert "hint: did you mean inventorySeconds?" in told
    assert_nothing_is_left(bed)


async def test_a_socket_path_that_is_too_long_is_refused_with_its_length(
    bed: Bed, api: EmbeddedApi
) -> None:
    deep = bed.root / ("d" * 90)
    deep.mkdir()
    code, told = await ended(*command(bed, api, "--simulate", "t4", "--kubelet-root", str(deep)))
    assert code == 3
    assert "allowed are 107" in told
    assert not list(deep.iterdir())


async def test_a_kubelet_root_that_is_not_there_is_an_unreachable_source(
    bed: Bed, api: EmbeddedApi
) -> None:
    nowhere = bed.root / "nowhere"
    code, told = await ended(*command(bed, api, "--simulate", "t4", "--kubelet-root", str(nowhere)))
    assert code == 3
    assert str(nowhere) in told


def assert_nothing_is_left(bed: Bed) -> None:
    """No socket, no folder of ours, nothing in the API."""
    assert not list(bed.kubelet_root.iterdir())
    assert not Path(bed.cdi_root).exists()
