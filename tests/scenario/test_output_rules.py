"""The output rules of every command that looks: off a terminal, narrow, without colour, cut off."""

import functools
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest
import yaml

from dragoon.cli import exits
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import Effect, Fault

ROOT = Path(__file__).parents[2]
SAVED = ("--snapshot", str(ROOT / "docs/examples/cluster.yaml"))
SIMULATED = ("--simulate", "dgx-h100")
COMMANDS = {
    "status": ["status", *SAVED],
    "check": ["check", "--category", "api,state,gang", *SAVED],
    "explain": ["explain", "claim/large-gpu", "-n", "team-a", *SAVED],
    "devices": ["devices", *SIMULATED],
    "topo": ["topo", *SIMULATED],
    "claim": ["claim", "new", "--gpus", "2"],
}
TABLES = {"status": COMMANDS["status"], "devices": COMMANDS["devices"]}
ESCAPE = "\x1b["
SECONDS = 300

each = pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)


@functools.cache
def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command with its output in pipes; once for all tests that want the same."""
    return subprocess.run(
        [sys.executable, "-m", "dragoon", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env=os.environ | variables,
    )


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """What the command writes to stdout where that is a terminal."""
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoon", *arguments],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=environment | {"TERM": "xterm"} | variables,
    )
    os.close(theirs)
    parts: list[bytes] = []
    with os.fdopen(ours, "rb", buffering=0) as stream:
        while True:
            try:
                part = stream.read(65536)
            except OSError:  # Linux says EIO when the other end is closed.
                break
            if not part:
                break
            parts.append(part)
    process.wait(SECONDS)
    return b"".join(parts).decode()


@each
def test_a_pipe_gets_the_same_whatever_the_width_and_never_colour(arguments: list[str]) -> None:
    wide, narrow = run(*arguments, COLUMNS="300"), run(*arguments, COLUMNS="20", TERM="xterm")
    assert wide.stdout == narrow.stdout
    assert wide.stdout
    assert ESCAPE not in wide.stdout + wide.stderr


@each
def test_data_is_on_stdout_and_what_to_type_next_on_stderr(arguments: list[str]) -> None:
    found = run(*arguments, COLUMNS="300")
    assert found.returncode in {0, 1}
    assert "next:" not in "\n".join(
        line for line in found.stdout.splitlines() if not line.startswith(" ")
    )
    if arguments[0] in {"status", "check", "explain", "claim"}:
        assert re.fullmatch(r"next: (dragoon|kubectl) .+", found.stderr.splitlines()[-1])


@pytest.mark.parametrize("arguments", TABLES.values(), ids=TABLES)
def test_colour_is_for_a_terminal_unless_it_is_not_wanted(arguments: list[str]) -> None:
    assert ESCAPE in on_a_terminal(*arguments)
    assert ESCAPE not in on_a_terminal(*arguments, NO_COLOR="1")
    assert ESCAPE not in on_a_terminal("--color", "never", *arguments)


def writing_to(stdout: TextIO, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """A command whose stdout is that file."""
    return subprocess.run(
        [sys.executable, "-m", "dragoon", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=SECONDS,
    )


@each
def test_a_reader_that_goes_away_is_no_error(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        found = writing_to(stdout, arguments)
    assert found.returncode in {0, 1}
    assert "Traceback" not in found.stderr
    assert "Broken pipe" not in found.stderr


@pytest.mark.parametrize(
    "arguments", [*COMMANDS.values(), ["--help"], ["version"]], ids=[*COMMANDS, "help", "version"]
)
def test_a_disk_that_is_full_is_told_and_is_no_bug(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as stdout:
        found = writing_to(stdout, arguments)
    assert found.returncode == 3
    assert "error: No space left on device" in found.stderr
    assert "Traceback" not in found.stderr


def test_streams_that_are_closed_are_no_fault() -> None:
    command = f"exec {sys.executable} -m dragoon"
    calls = {
        "version >&-": exits.FINE,
        "version 2>&-": exits.FINE,
        "lint -f - <&- >&- 2>&-": exits.USAGE,  # it is given nothing
    }
    for call, code in calls.items():
        done = subprocess.run(["sh", "-c", f"{command} {call}"], check=False, timeout=SECONDS)
        assert done.returncode == code, call


@pytest.mark.parametrize(
    "arguments", [["lint", "-f", "-"], ["simulate", "-f", "-", *SAVED]], ids=["lint", "simulate"]
)
def test_manifests_come_through_a_pipe_too(arguments: list[str]) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "dragoon", *arguments],
        input=run("claim", "new", "--gpus", "2").stdout + "---\na: [\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert found.returncode == 1
    assert "stdin:" in found.stdout + found.stderr
    assert "(document 2)" in found.stdout + found.stderr


@pytest.mark.parametrize("name", ["status", "check", "explain"])
def test_programs_get_versioned_data_and_nothing_else_on_stdout(name: str) -> None:
    as_json, as_yaml = (run(*COMMANDS[name], "-o", form) for form in ("json", "yaml"))
    found = json.loads(as_json.stdout)
    assert found == yaml.safe_load(as_yaml.stdout)
    assert found["apiVersion"] == "diagnose.dragoon.dev/v1"
    assert found["kind"]


def test_an_interrupt_ends_with_130_and_without_a_traceback(tmp_path: Path) -> None:
    nowhere = ("--kubelet-root", str(tmp_path / "none"), "--wait", "10m")
    command = [sys.executable, "-m", "dragoon", "check", "--category", "kubelet", *nowhere]
    # A shell that runs the tests in the background has interrupts ignored, and they inherit it.
    with subprocess.Popen(
        ["env", "--default-signal=INT", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "note: KUBELET001, looking again\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "words", [("devices",), ("topo",), ("mig",), ("check", "--category", "host")]
)
def test_the_process_ends_although_the_driver_hangs(words: tuple[str, ...], tmp_path: Path) -> None:
    machine = tmp_path / "machine.json"
    hardware = Hardware.installed(machine, find_machine("t4"), "n1")
    hardware.fail(Fault("nvmlDeviceGetCount_v2", Effect.HANG))
    found = run(*words, "--simulate-state", str(machine), "--timeout", "100ms")
    assert found.returncode == (1 if words[0] == "check" else 3)
    assert "no answer within 0.1 s: the driver hangs" in found.stdout + found.stderr
