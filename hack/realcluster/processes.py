"""Start and stop processes that outlive this one, and never touch anybody else's."""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

from realcluster.failure import ClusterError
from realcluster.state import Process, edit

# Every process of a cluster carries this variable, and so do the shims that containerd starts:
# what is left of a cluster can be told from everything else even without its state file.
MARK = "DRAGOON_CLUSTER_FOLDER"

_TAIL_LINES = 15
_GRACE_S = 10.0


def is_alive(process: Process) -> bool:
    """Whether the recorded process, not another one with its ID, runs."""
    if process.pid is None or process.start_time is None:
        return False
    return _start_time(process.pid) == process.start_time


def start(state_file: Path, name: str) -> None:
    """Start a recorded process unless it runs."""
    with edit(state_file) as state:
        process = _named(state.processes, name)
        if is_alive(process):
            return
        process.pid = _spawn(process, state_file.parent)
        process.start_time = _start_time(process.pid)


def record(state_file: Path, name: str, process: Process) -> None:
    """Record how a component is started; one that was started in another way is stopped first."""
    with edit(state_file) as state:
        known = state.processes.get(name)
        if known is not None and known.command == process.command:
            return
        if known is not None and known.pid is not None:
            terminate(known.pid, known.start_time, grace=_GRACE_S)
        state.processes[name] = process


def stop(state_file: Path, name: str, *, grace: float = _GRACE_S) -> None:
    """Stop a recorded process: SIGTERM, then SIGKILL after the grace period."""
    with edit(state_file) as state:
        process = _named(state.processes, name)
        if process.pid is not None:
            terminate(process.pid, process.start_time, grace=grace)
        process.pid = process.start_time = None


def terminate(pid: int, start_time: int | None, *, grace: float) -> None:
    """End one process and return when it is gone; do nothing if the ID is another process."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # The handle is of whoever has the ID now; only after this look can it be trusted.
        if start_time is None or _start_time(pid) != start_time:
            return
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 30.0)):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            if _exits_within(handle, patience):
                return
        raise ClusterError(f"process {pid} is still there after SIGKILL")
    finally:
        os.close(handle)
        _reap(pid)


def left_over(folder: Path) -> list[tuple[int, int]]:
    """Processes marked as this cluster's: (ID, start time)."""
    wanted = f"{MARK}={folder}".encode()
    found = []
    for pid, environment in _environments():
        started = _start_time(pid)
        if wanted in environment.split(b"\0") and started is not None:
            found.append((pid, started))
    return found


def tail(log: str, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log file."""
    with contextlib.suppress(FileNotFoundError):
        return "\n".join(Path(log).read_text(errors="replace").splitlines()[-lines:])
    return ""


def death_note(process: Process) -> str | None:
    """Why waiting for a process is in vain: it is dead, and these were its last words."""
    if is_alive(process):
        return None
    return f"{Path(process.command[0]).name} has died; the end of {process.log}:\n" + tail(
        process.log
    )


def _named(processes: dict[str, Process], name: str) -> Process:
    if name not in processes:
        raise ClusterError(f"no component {name!r}; there are: {', '.join(processes)}")
    return processes[name]


def _spawn(process: Process, folder: Path) -> int:
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment = {"PATH": path, "HOME": str(folder), MARK: str(folder)}
    log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # posix_spawn and not subprocess: the process is meant to outlive us, and a Popen object
    # warns about exactly that when it is collected.
    return os.posix_spawn(
        process.command[0],
        process.command,
        environment,
        setsid=True,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, process.log, log, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )


def _start_time(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat; None if there is no such process or only its corpse."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may contain anything, also spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def _exits_within(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _reap(pid: int) -> None:
    """Collect the process if it was our own child, as in tests that stop and start."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _environments() -> Iterator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                yield int(entry.name), (entry / "environ").read_bytes()
