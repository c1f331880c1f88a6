"""A process of Dragoon: started, killed, stopped, and asked whether it is ready."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from realcluster.processes import tail
from testbed.ports import free_port, is_ready
from testbed.waiting import PATIENCE, NotInTimeError, until


class Process:
    """One `dragoon COMMAND`; it can be killed and started again.

    environment: variables of its own beside those of this process.
    """

    def __init__(
        self, log: Path, *command: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        self._endpoint = f"127.0.0.1:{free_port()}"
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [sys.executable, "-m", "dragoon", *command, "--listen", self._endpoint]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._environment},
            )

    def start_and_wait(self) -> None:
        """Starts, and returns when it says that it is ready; else tells how its log ends."""
        self.start()
        try:
            until(f"dragoon {self._command[3]} is ready", lambda: is_ready(self._endpoint))
        except NotInTimeError as error:
            raise NotInTimeError(f"{error}; its log ends:\n{tail(str(self.log))}") from error

    def send(self, what: signal.Signals) -> None:
        """Sends a signal that does not end it."""
        assert self._process is not None
        self._process.send_signal(what)

    def kill(self) -> None:
        """SIGKILL, as a crash would be."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(timeout=PATIENCE)
        self._process = None
