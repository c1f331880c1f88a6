import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from dragoon.cli import exits, main, reference
from dragoon.cli.lazy import LazyGroup
from dragoon.errors import (
    ApiForbiddenError,
    ApiUnavailableError,
    ClaimGoneError,
    ConfigError,
    DragoonError,
    DriverMissingError,
    KubeletError,
    StateError,
    UnsupportedError,
)

DOCS = Path(__file__).parents[3] / "docs"
HEAVY = {"grpc", "kubernetes", "aiohttp", "pynvml", "rich", "structlog", "msgspec", "yaml"}


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )


class Failing(main.Root):
    """The real root with a command that raises what it was given."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__("dragoon", lazy={}, params=main.root.params, callback=main.root.callback)
        self.failure = failure

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        @click.command(cmd_name)
        def command() -> None:
            raise self.failure

        return command


def outcome(failure: BaseException, *options: str) -> int:
    return main.run([*options, "fail"], command=Failing(failure))


def test_help_imports_nothing_heavy_and_no_command() -> None:
    found = python(
        "import sys; from dragoon.cli import main; main.run(['--help']);"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    loaded = set(found.stderr.split())
    assert "Ask:" in found.stdout
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("dragoon")} == {
        "dragoon",
        "dragoon.api",
        "dragoon.api.visible",
        "dragoon.cli",
        "dragoon.cli.calling",
        "dragoon.cli.exits",
        "dragoon.cli.lazy",
        "dragoon.cli.main",
        "dragoon.cli.terminal",
        "dragoon.errors",
    }


def test_help_imports_few_modules_beyond_click() -> None:
    count = "import sys; {}; print(len(sys.modules), file=sys.stderr)"
    alone = int(python(count.format("import click, traceback")).stderr)
    ours = int(
        python(count.format("from dragoon.cli import main; main.run(['--help'])")).stderr.split()[
            -1
        ]
    )
    assert ours - alone < 40


def completed(*words: str) -> subprocess.CompletedProcess[str]:
    """What a shell is told after these words, and on stderr which modules that took."""
    code = (
        "import atexit, sys; from dragoon.cli import main;"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main.run([])"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PYTHONPATH": ":".join(sys.path),
            "_DRAGOON_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("dragoon", *words)),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_shell_completes_commands_without_importing_any() -> None:
    found = completed("s")
    assert found.stdout.split() == ["plain,status", "plain,simulate"]
    assert not HEAVY & set(found.stderr.split())
    assert "dragoon.cli.status" not in found.stderr


def test_a_shell_completes_options() -> None:
    assert completed("explain", "--kube").stdout == "plain,--kubeconfig\n"
    assert completed("--de").stdout == "plain,--debug\n"


def test_help_says_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for code, meaning in exits.MEANINGS.items():
        assert f"{code} {meaning}" in text


def test_every_command_in_the_table_has_the_help_of_the_table() -> None:
    assert isinstance(main.root, LazyGroup)
    for name, entry in main.COMMANDS.items():
        command = entry.load()
        assert command.get_short_help_str(limit=200) == entry.text, name
        assert command.hidden == (entry.hidden or bool(entry.alias_of)), name


def test_the_help_groups_the_commands_by_what_one_wants(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["--help"]) == 0
    told = capsys.readouterr().out
    groups = ["\nAsk:", "\nLook:", "\nRun:", "\nPrint what to apply:", "\nElse:"]
    assert [told.index(one) for one in groups] == sorted(told.index(one) for one in groups)
    assert "  explain, why  " in told
    assert "reference" not in told


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (UnsupportedError("x"), 2),
        (DriverMissingError("x"), 3),
        (ApiUnavailableError("x"), 3),
        (ApiForbiddenError("x"), 3),
        (KubeletError("x"), 3),
        (StateError("x"), 3),
        (ClaimGoneError("x"), 1),
        (DragoonError("x"), 4),
    ],
)
def test_an_error_of_ours_ends_with_the_code_of_its_kind(error: DragoonError, code: int) -> None:
    assert outcome(error) == code


def test_an_error_is_a_message_and_a_hint_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(ConfigError("field x: found 1", hint="set it to 2")) == 2
    told = capsys.readouterr()
    assert told.err == "error: field x: found 1\nhint: set it to 2\nnext: dragoon fail --help\n"
    assert not told.out


def test_an_error_without_a_hint_has_no_hint_line(capsys: pytest.CaptureFixture[str]) -> None:
    outcome(ConfigError("field x: found 1"))
    assert capsys.readouterr().err == "error: field x: found 1\nnext: dragoon fail --help\n"


@pytest.mark.parametrize(
    ("error", "command"),
    [
        (ConfigError("x"), "dragoon fail --help"),
        (DriverMissingError("x"), "dragoon check --category host"),
        (ApiUnavailableError("x"), "dragoon check --category api"),
        (KubeletError("x"), "dragoon check --category kubelet"),
        (StateError("x"), "dragoon check --category state"),
        (ClaimGoneError("x"), "dragoon check"),
        (ZeroDivisionError("x"), "dragoon dump"),
    ],
)
def test_every_message_ends_with_what_to_type_next(
    error: Exception, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome(error)
    assert capsys.readouterr().err.splitlines()[-1] == f"next: {command}"


@pytest.mark.parametrize(
    ("what", "where", "asked"),
    [
        ("resourceslices", "at the cluster scope", "list resourceslices.resource.k8s.io"),
        (
            "resourceslices",
            'in the namespace "team-a"',
            "list resourceslices.resource.k8s.io -n team-a",
        ),
        (
            "resourceclaims/status",
            "at the cluster scope",
            "list resourceclaims.resource.k8s.io --subresource=status",
        ),
    ],
)
def test_a_missing_permission_is_named_with_its_verb(
    what: str, where: str, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        'resourceslices.resource.k8s.io is forbidden: User "u" cannot list resource '
        f'"{what}" in API group "resource.k8s.io" {where}'
    )
    assert outcome(ApiForbiddenError(text, status=403)) == 3
    assert capsys.readouterr().err.splitlines()[-1] == f"next: kubectl auth can-i {asked}"


def test_a_bug_is_one_line_and_says_how_to_see_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(ZeroDivisionError("oops")) == 4
    told = capsys.readouterr().err
    assert told.startswith("error: internal fault: ZeroDivisionError: oops\nhint: ")
    assert "--debug" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError(5, "Input/output error", "/x"), "/x: Input/output error"),
        (
            PermissionError(13, "Permission denied", "/x"),
            "/x: Permission denied\nhint: run it as a user who may, such as root",
        ),
    ],
)
def test_what_the_machine_refuses_is_no_bug(
    error: OSError, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(error) == 3
    assert capsys.readouterr().err == f"error: {told}\nnext: dragoon check\n"


def test_a_time_limit_that_nobody_caught_is_a_bug() -> None:
    assert outcome(TimeoutError()) == 4


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(ZeroDivisionError("oops"), "--debug") == 4
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_ends_with_130() -> None:
    assert outcome(KeyboardInterrupt()) == 130


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["--color", "blue"], []])
def test_wrong_usage_ends_with_2_and_says_so_on_stderr(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 2
    told = capsys.readouterr()
    assert not told.out
    assert "Usage: dragoon" in told.err


@pytest.mark.parametrize(
    ("arguments", "meant"), [(["devces"], "devices"), (["claim", "nwe"], "new"), (["refernce"], "")]
)
def test_a_command_that_is_not_there_is_told_with_the_nearest_that_is_shown(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"Error: No such command {arguments[-1]!r}." + (
        f" Did you mean {meant!r}?" if meant else ""
    )


def test_wrong_usage_of_a_command_in_a_group_names_both(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["claim", "new", "--gpus", "0"]) == 2
    assert capsys.readouterr().err.endswith("next: dragoon claim new --help\n")


@pytest.mark.parametrize("arguments", ["version", "--help"])
def test_a_broken_pipe_is_silent(arguments: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        found = subprocess.run(
            [sys.executable, "-m", "dragoon", arguments],
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            timeout=300,
        )
    assert found.stderr == b""


def test_python_dash_m_runs_the_command() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "dragoon", "version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert found.stdout.startswith("dragoon 0.")


@pytest.mark.parametrize(
    ("choice", "environment", "is_terminal", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_colour_follows_flag_environment_and_terminal(
    choice: str, environment: dict[str, str], *, is_terminal: bool, expected: bool
) -> None:
    assert main.wants_colour(choice, environment, is_terminal=is_terminal) == expected


def test_the_command_page_of_the_documentation_is_what_help_says() -> None:
    assert (DOCS / "cli.md").read_text() == reference.cli_reference(main.root), (
        "run: dragoon reference cli > docs/cli.md"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("topo",),
        ("explain", "pod/x"),
        ("check",),
        ("cdi", "show"),
        ("gangs", "make-room", "x"),
    ],
)
def test_an_output_that_makes_no_sense_is_wrong_usage_and_the_allowed_are_named(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([*words, "-o", "name"]) == 2
    assert "'name' is not one of 'table', 'json', 'yaml'." in capsys.readouterr().err
