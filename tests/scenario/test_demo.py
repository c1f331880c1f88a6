"""`dragoon demo` as a newcomer runs it: every section says what is true."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dragoon.app.demo import scheduling

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[2]
_SECONDS = 300
"""Within these a demo is over on a busy machine, too; alone it takes three."""
COMMAND = [sys.executable, "-m", "dragoon", "demo"]
TITLES = [
    "The node",
    "A pod that needs a GPU with at least 40Gi of memory",
    "A pod that needs 2 GPUs in one NVLink domain",
    "A claim that cannot fit",
    "The plugin is killed while the pod runs",
    "Try next",
]


@pytest.fixture(scope="module")
def short_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dm", dir="/tmp") as folder:
        yield Path(folder)


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"TMPDIR": str(folder)}


@pytest.fixture(scope="module")
def told(short_folder: Path) -> str:
    """What the demo prints into a pipe."""
    found = subprocess.run(
        COMMAND,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env=environment(short_folder),
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert not found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def sections(told: str) -> dict[str, str]:
    parts = re.split(r"^== (.*)\n", told, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def block(section: str, label: str) -> str:
    """The indented text under a label."""
    found = re.search(rf"^{re.escape(label)}.*:\n((?:    .*\n)+)", section, re.MULTILINE)
    assert found, f"no {label!r} in:\n{section}"
    return re.sub(r"^ {4}", "", found[1], flags=re.MULTILINE)


def test_the_sections_come_in_the_order_of_the_story(sections: dict[str, str]) -> None:
    assert list(sections) == TITLES


def test_piped_output_is_plain(told: str) -> None:
    assert "\x1b" not in told


def test_the_node_has_eight_gpus_in_one_domain(sections: dict[str, str]) -> None:
    text = sections["The node"]
    rows = re.findall(r"^gpu-\S+  NVIDIA H100 80GB HBM3  79\.6 GiB  (\S+)", text, re.MULTILINE)
    assert len(rows) == 8
    assert len(set(rows)) == 1
    assert "Linked by NVLink: 8 GPUs in domain" in text


@pytest.mark.parametrize(("title", "count"), [(TITLES[1], 1), (TITLES[2], 2)])
def test_a_claim_of_six_lines_gets_its_gpus_and_the_container_sees_no_others(
    sections: dict[str, str], title: str, count: int
) -> None:
    section = sections[title]
    asked = block(section, "You ask")
    assert len(asked.splitlines()) == 6
    assert yaml.safe_load(asked)["kind"] == "ResourceClaim"
    got = re.findall(r"^(gpu-\S+): ", block(section, "You get"), re.MULTILINE)
    assert len(got) == count
    assert f"chosen, first fit in the order of names: {', '.join(got)}" in block(
        section, "Why these"
    )
    inside = block(section, "Inside the container")
    assert re.findall(r"^/dev/dragoon/(\S+) ", inside, re.MULTILINE) == got
    assert re.findall(r"^DRAGOON_(GPU\S+)=GPU-", inside, re.MULTILINE) == [
        name.upper().replace("-", "_") for name in got
    ]
    spec = yaml.safe_load(block(section, "By the CDI spec"))
    assert [device["name"].rpartition("_")[2] for device in spec["devices"]] == got


def test_the_two_gpus_are_in_one_nvlink_domain_and_not_the_first_claims(
    sections: dict[str, str],
) -> None:
    first = re.findall(r"^(gpu-\S+): ", block(sections[TITLES[1]], "You get"), re.MULTILINE)
    pair = re.findall(
        r"^(gpu-\S+): .*, NVLink domain (\S+)$",
        block(sections[TITLES[2]], "You get"),
        re.MULTILINE,
    )
    assert len({domain for _, domain in pair}) == 1
    assert not {name for name, _ in pair} & set(first)


def test_the_claim_that_cannot_fit_says_who_holds_what(sections: dict[str, str]) -> None:
    reason = block(sections["A claim that cannot fit"], "It waits, because")
    assert "needs 8 devices" in reason
    assert "not in use: 5 left, 3 out" in reason
    assert "held by claim default/forty" in reason
    assert "held by claim default/pair" in reason


def test_after_the_kill_the_same_answer_comes_again(sections: dict[str, str]) -> None:
    text = sections["The plugin is killed while the pod runs"]
    assert re.search(r"^kill -9 \d+$", text, re.MULTILINE)
    assert "the same answer, the same devices" in text


def test_three_commands_to_try_next_really_work(sections: dict[str, str]) -> None:
    lines = sections["Try next"].strip().splitlines()
    assert len(lines) == 3
    for line in lines[:2]:
        arguments = line.partition("#")[0].split()
        assert arguments[:3] == ["python", "-m", "dragoon"]
        subprocess.run(
            [sys.executable, *arguments[1:]], check=True, capture_output=True, timeout=_SECONDS
        )


def test_no_process_and_no_folder_is_left(told: str, short_folder: Path) -> None:
    assert told
    assert not list(short_folder.iterdir())
    assert not processes_below(short_folder)


def test_a_terminal_gets_colour_and_the_same_text(short_folder: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "dragoon", "--color", "always", "demo"],
        capture_output=True,
        text=True,
        check=True,
        timeout=_SECONDS,
        env=environment(short_folder),
    )
    assert "\x1b[" in found.stdout
    bare = re.sub(r"\x1b\[[0-9;]*m", "", found.stdout)
    assert re.findall(r"^== (.*)$", bare, re.MULTILINE) == TITLES


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_the_middle_leaves_nothing_and_ends_with_130(
    number: signal.Signals, short_folder: Path
) -> None:
    with subprocess.Popen(
        COMMAND,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(short_folder) | {"PYTHONUNBUFFERED": "1"},
        # A shell starts what it puts in the background, such as these tests, deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("== The node"):
            assert process.poll() is None
        assert processes_below(short_folder)
        process.send_signal(number)
        _, told = process.communicate(timeout=_SECONDS)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert not list(short_folder.iterdir())
    assert not processes_below(short_folder)


def test_a_plugin_that_cannot_start_ends_the_demo_with_its_log(short_folder: Path) -> None:
    """A config file that is wrong reaches the plugin through the environment."""
    found = subprocess.run(
        COMMAND,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env=environment(short_folder) | {"DRAGOON_CONFIG": "/nowhere/config.yaml"},
    )
    assert found.returncode == 4
    assert "the plugin ended" in found.stderr
    assert "/nowhere/config.yaml" in found.stderr
    assert not list(short_folder.iterdir())


def test_the_script_sets_itself_up_and_runs_the_command() -> None:
    script = ROOT / "hack/demo"
    assert os.access(script, os.X_OK)
    lines = script.read_text().splitlines()
    assert ". hack/env" in lines
    assert lines[-1] == 'exec dragoon demo "$@"'


def test_the_demos_device_class_is_the_one_that_is_shipped() -> None:
    shipped = yaml.safe_load((ROOT / "deviceclasses/sim.dragoon.dev.yaml").read_text())
    assert scheduling.simulated_class() == shipped


def processes_below(folder: Path) -> list[str]:
    """Command lines of live processes that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"{folder}/" in line:
            found.append(line)
    return found
