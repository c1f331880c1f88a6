"""With real processes: what matters here is what the kernel says about them."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from realcluster import processes, state
from realcluster.failure import ClusterError
from realcluster.state import Process, Settings, State
from realcluster.waiting import wait_for


@pytest.fixture
def state_file(tmp_path: Path) -> Iterator[Path]:
    log = str(tmp_path / "log")
    path = tmp_path / "state.json"
    commands = {
        "sleeper": ["/bin/sleep", "600"],
        "stubborn": ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"],
        "failing": ["/bin/sh", "-c", "echo no such luck >&2; exit 3"],
    }
    state.save(
        path,
        State(
            name="test",
            folder=str(tmp_path),
            kubernetes="1.37.2",
            settings=Settings(),
            programs={},
            images={},
            processes={name: Process(command, log) for name, command in commands.items()},
        ),
    )
    yield path
    for name in commands:
        processes.stop(path, name, grace=0)


def recorded(state_file: Path, name: str) -> Process:
    return state.load(state_file).processes[name]


def wait_until_dead(process: Process) -> None:
    assert process.pid is not None
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def test_start_is_recorded_and_done_once(state_file: Path) -> None:
    processes.start(state_file, "sleeper")
    first = recorded(state_file, "sleeper")
    assert processes.is_alive(first)
    processes.start(state_file, "sleeper")
    assert recorded(state_file, "sleeper") == first


def test_what_is_recorded_as_it_was_goes_on(state_file: Path) -> None:
    processes.start(state_file, "sleeper")
    first = recorded(state_file, "sleeper")
    processes.record(state_file, "sleeper", Process(list(first.command), first.log))
    assert recorded(state_file, "sleeper") == first
    assert processes.is_alive(first)


def test_what_is_recorded_otherwise_is_stopped_and_started_in_the_new_way(
    state_file: Path,
) -> None:
    processes.start(state_file, "sleeper")
    first = recorded(state_file, "sleeper")
    command = ["/bin/sleep", "700"]
    processes.record(state_file, "sleeper", Process(command, first.log))
    assert not processes.is_alive(first)
    processes.start(state_file, "sleeper")
    again = recorded(state_file, "sleeper")
    assert processes.is_alive(again)
    assert again.command == command


def test_stop_and_start_gives_another_process(state_file: Path) -> None:
    processes.start(state_file, "sleeper")
    first = recorded(state_file, "sleeper")
    processes.stop(state_file, "sleeper")
    assert not processes.is_alive(first)
    assert recorded(state_file, "sleeper").pid is None
    processes.start(state_file, "sleeper")
    assert recorded(state_file, "sleeper") != first


def test_process_that_ignores_sigterm_is_killed(state_file: Path) -> None:
    processes.start(state_file, "stubborn")
    process = recorded(state_file, "stubborn")
    while "ready" not in processes.tail(process.log):
        os.sched_yield()
    processes.stop(state_file, "stubborn", grace=0.2)
    assert not processes.is_alive(process)


def test_another_process_with_the_recorded_id_is_left_alone(state_file: Path) -> None:
    processes.start(state_file, "sleeper")
    process = recorded(state_file, "sleeper")
    assert process.pid is not None
    assert process.start_time is not None
    processes.terminate(process.pid, process.start_time - 1, grace=0)
    assert processes.is_alive(process)
    stale = Process(process.command, process.log, process.pid, process.start_time - 1)
    assert not processes.is_alive(stale)


def test_dead_child_that_nobody_collected_counts_as_dead(state_file: Path) -> None:
    processes.start(state_file, "sleeper")
    process = recorded(state_file, "sleeper")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    wait_until_dead(process)
    assert not processes.is_alive(process)


def test_death_note_quotes_the_log(state_file: Path) -> None:
    processes.start(state_file, "failing")
    process = recorded(state_file, "failing")
    wait_until_dead(process)
    note = processes.death_note(process)
    assert note is not None
    assert "sh has died" in note
    assert "no such luck" in note


def test_marked_processes_are_found_without_the_state(state_file: Path) -> None:
    processes.start(state_file, "sleeper")
    process = recorded(state_file, "sleeper")
    # A program that was started this moment may not have its environment yet.
    wait_for("the mark", lambda: bool(processes.left_over(state_file.parent)))
    assert processes.left_over(state_file.parent) == [(process.pid, process.start_time)]
    assert processes.left_over(state_file.parent / "other") == []


def test_unknown_component_names_the_known_ones(state_file: Path) -> None:
    with pytest.raises(ClusterError, match="there are: sleeper, stubborn, failing"):
        processes.stop(state_file, "kubelt")
