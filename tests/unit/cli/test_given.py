"""Values that say nothing, as of a shell's variable that is not set, and names of no driver."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dragoon.cli import exits, main

Capture = pytest.CaptureFixture[str]

NAMES = frozenset(("--namespace", "--config", "--label", "--service-account", "--driver-name"))
"""Options whose empty value would mean something else; those of settings may be empty."""


def below(group: click.Group, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield (*words, name), found
        if isinstance(found, click.Group):
            yield from below(found, *words, name)


def says_where(command: click.Command, option: click.Parameter) -> bool:
    own_name = any(one.name == "driver_name" and one.default for one in command.params)
    return isinstance(option.type, click.Path) or (
        option.opts[-1] in NAMES and (option.name != "driver_name" or own_name)
    )


CASES = [
    (words, option.opts[-1])
    for words, command in below(main.root)
    for option in command.params
    if isinstance(option, click.Option) and says_where(command, option)
]
CASES += [(("dump",), "--output"), (("map",), "--simulate"), (("claim", "new"), "--memory")]


@pytest.mark.parametrize(
    ("words", "option"), CASES, ids=["-".join((*words, option)) for words, option in CASES]
)
def test_an_empty_value_is_refused_with_the_name_of_its_option(
    words: tuple[str, ...], option: str, capsys: Capture
) -> None:
    assert main.run([*words, option, ""]) == exits.USAGE
    told = capsys.readouterr()
    assert "Invalid value for " in told.err
    assert f"{option}': " in told.err
    assert not told.out


def test_every_command_that_takes_files_is_among_them() -> None:
    assert {(("lint",), "--filename"), (("status",), "--snapshot")} <= set(CASES)
    assert len([one for one in CASES if one[1] == "--kubeconfig"]) >= 10


@pytest.mark.parametrize("name", ["", "Gpu.dragoon.dev", "a" * 64, "a b", "../x"])
@pytest.mark.parametrize(
    "words", [("status",), ("devices",), ("retire", "--check"), ("map",), ("rbac",), ("lint",)]
)
def test_a_name_that_no_driver_can_have_is_refused(
    words: tuple[str, ...], name: str, capsys: Capture
) -> None:
    assert main.run([*words, "--driver-name", name]) == exits.USAGE
    assert not capsys.readouterr().out


@pytest.mark.parametrize("words", [("usage",), ("gangs", "show"), ("explain",)])
def test_an_object_without_a_name_is_refused(words: tuple[str, ...], capsys: Capture) -> None:
    assert main.run([*words, ""]) == exits.USAGE
    assert "found '', allowed is" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        *(("status", "--local"), ("check",), ("devices",), ("topo",), ("mig",), ("usage",)),
        *(("map",), ("dump", "--local", "-o", "never-written")),
    ],
    ids=lambda words: words[0],
)
def test_a_machine_that_there_is_not_is_refused(words: tuple[str, ...], capsys: Capture) -> None:
    assert main.run([*words, "--simulate", "dgx-h1000"]) == exits.USAGE
    told = capsys.readouterr()
    assert "error: simulated machine: found 'dgx-h1000', allowed: a topology file, or" in told.err
    assert not told.out


def test_a_machine_of_a_wrong_file_is_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "m.yaml").write_text("gpus: 3")
    file = tmp_path / "dump.tar.gz"
    words = ["dump", "--local", "-o", str(file), "--simulate", str(tmp_path / "m.yaml")]
    assert main.run(words) == exits.USAGE
    assert f"error: {tmp_path}/m.yaml" in capsys.readouterr().err
    assert not file.exists()
