"""Which process has used how much CPU: on a machine of few cores that is what a time is made of."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from realcluster.state import State


def cpu_seconds(pid: int | None) -> float:
    """What a process has used so far (proc(5), utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Spending:
    """CPU seconds of processes by name, from entering to leaving `measured`."""

    def __init__(self, state: State, more: Mapping[str, int] | None = None) -> None:
        self._pids = {name: process.pid for name, process in state.processes.items()}
        self._pids |= {"client": os.getpid(), **(more or {})}
        self._spent: dict[str, float] = {}

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measures what happens inside."""
        before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        yield
        self._spent = {name: cpu_seconds(pid) - before[name] for name, pid in self._pids.items()}

    def __str__(self) -> str:
        most_first = sorted(self._spent.items(), key=lambda item: -item[1])
        total = sum(self._spent.values())
        return f"{total:.1f} s of CPU: " + ", ".join(
            f"{name} {seconds:.1f}" for name, seconds in most_first
        )
