"""The plugin as a child process: started, killed and stopped by its id, its log kept in a file."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from dragoon.app.demo.stage import DemoError

_LOG_LINES: Final = 15

_Found = TypeVar("_Found")


class PluginProcess:
    """One plugin process after another, with the same command line and the same log."""

    def __init__(self, command: Sequence[str], *, log: Path, stop_seconds: float = 10.0) -> None:
        """stop_seconds: how long a stop waits before it kills."""
        self._command = tuple(command)
        self._log = log
        self._stop_seconds = stop_seconds
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._running().pid

    async def start(self) -> None:
        """Starts the process; it does not get the terminal's Ctrl-C, that is for us to pass on."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def kill(self) -> int:
        """SIGKILL; answers the process id when the process is gone."""
        process = self._running()
        await _killed(process)
        return process.pid

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL where that is not enough. Idempotent."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), self._stop_seconds)
        except TimeoutError:
            await _killed(process)

    async def wait_for(self, what: str, coming: Awaitable[_Found], *, within: float) -> _Found:
        """What `coming` answers.

        Raises DemoError with the end of the log when it takes longer than `within` seconds, or
        when the process ends before.
        """
        waiting = asyncio.ensure_future(coming)
        ended = asyncio.ensure_future(self._running().wait())
        try:
            await asyncio.wait(
                {waiting, ended}, timeout=within, return_when=asyncio.FIRST_COMPLETED
            )
            if waiting.done():
                return waiting.result()
            why = "the plugin ended" if ended.done() else f"not within {within:g} s"
            raise DemoError(f"{what}: {why}", hint=f"the plugin's log ends with:\n{self.log_end()}")
        finally:
            waiting.cancel()
            ended.cancel()

    def log_end(self) -> str:
        """The last lines of the log."""
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES:])

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise DemoError("the plugin has not been started")
        return self._process


async def _killed(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):  # It has ended by itself just now.
        process.kill()
    await process.wait()
