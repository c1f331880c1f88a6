import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from dragoon.app.demo.process import PluginProcess
from dragoon.app.demo.stage import DemoError
from testbed.waiting import PATIENCE

Made = Callable[[str], PluginProcess]

STOP_SECONDS = 0.5
READY_THEN_SLEEP = "print('ready', flush=True); import time; time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + READY_THEN_SLEEP


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Made]:
    processes: list[PluginProcess] = []

    def make(script: str) -> PluginProcess:
        process = PluginProcess(
            [sys.executable, "-c", script], log=tmp_path / "log", stop_seconds=STOP_SECONDS
        )
        processes.append(process)
        return process

    yield make
    for process in processes:
        await process.stop()


async def said(process: PluginProcess, text: str) -> None:
    while text not in process.log_end():  # noqa: ASYNC110 - a file has no event
        await asyncio.sleep(0.01)


async def test_what_is_waited_for_is_answered(made: Made) -> None:
    process = made(READY_THEN_SLEEP)
    await process.start()
    assert await process.wait_for("x", asyncio.sleep(0, "here"), within=PATIENCE) == "here"


async def test_a_process_that_ends_early_is_told_at_once_with_its_log(made: Made) -> None:
    process = made("import sys; sys.exit('no such flag')")
    await process.start()
    with pytest.raises(DemoError, match="it is ready: the plugin ended") as caught:
        await process.wait_for("it is ready", asyncio.Event().wait(), within=PATIENCE)
    assert "no such flag" in caught.value.hint


async def test_a_wait_has_a_deadline(made: Made) -> None:
    process = made(READY_THEN_SLEEP)
    await process.start()
    with pytest.raises(DemoError, match=r"it is ready: not within 0\.05 s"):
        await process.wait_for("it is ready", asyncio.Event().wait(), within=0.05)


async def test_an_error_of_what_is_waited_for_goes_through(made: Made) -> None:
    async def fail() -> None:
        raise KeyError("x")

    process = made(READY_THEN_SLEEP)
    await process.start()
    with pytest.raises(KeyError):
        await process.wait_for("it is ready", fail(), within=PATIENCE)


async def test_a_killed_process_is_gone_and_can_be_started_again(made: Made) -> None:
    process = made(READY_THEN_SLEEP)
    await process.start()
    pid = await process.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await process.start()
    await process.wait_for("ready", said(process, "ready"), within=PATIENCE)


async def test_a_process_that_ends_just_when_it_is_to_be_killed_is_stopped(made: Made) -> None:
    process = made(READY_THEN_SLEEP)
    await process.start()
    await process.wait_for("ready", said(process, "ready"), within=PATIENCE)
    stopping = asyncio.create_task(process.stop())
    await asyncio.sleep(0)  # It is told to end,
    time.sleep(STOP_SECONDS + 0.2)  # noqa: ASYNC251 - and does while nobody looks.
    await stopping


async def test_stop_ends_the_process_even_if_it_does_not_listen(made: Made) -> None:
    process = made(DEAF)
    await process.start()
    await process.wait_for("ready", said(process, "ready"), within=PATIENCE)
    pid = process.pid
    await process.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await process.stop()
