"""`dragoon reference`: pages of docs/, and a file of the chart, that are made from the code."""

from collections.abc import Callable, Iterator
from typing import Final

import click
import yaml

from dragoon.api.names import DRIVER_NAME
from dragoon.app import config, controller_config, permissions
from dragoon.diagnose import reference as diagnoses
from dragoon.gang.discovering import reference as gang_sources
from dragoon.prepare.status import reference as refusals
from dragoon.telemetry import gang_metrics, metrics

_CLI_INTRODUCTION: Final = """\
# Commands

Data goes to stdout, everything else to stderr. Piped output is plain text; scripts should take
`-o json`, whose shape is that of the Kubernetes API, and not the tables. Commands that list objects
know `-o wide`, with more columns and why something is not known, and `-o name`, with names as
other commands take them and, as kubectl does it, without the namespace. `--timeout` bounds how long
a driver, a login or an API server is waited for. An option whose value is empty, as of a variable that
is not set, is refused where it would mean something else. Every command ends with one of the exit codes
below.

`pip install .` in a checkout installs the command, as `dragoon` and as `kubectl dragoon`. In bash,
`eval "$(_DRAGOON_COMPLETE=bash_source dragoon)"` completes its commands and options; the same with
`zsh_source` in zsh, and `_DRAGOON_COMPLETE=fish_source dragoon | source` in fish.
"""
_ROLES_INTRODUCTION: Final = "# Written by `dragoon reference roles`: what the code declares.\n"


def cli_reference(root: click.Group) -> str:
    """docs/cli.md: the help of every command that is not hidden."""
    sections = [_CLI_INTRODUCTION]
    sections += [f"## {name}\n\n```\n{text}\n```\n" for name, text in _helps(root)]
    return "\n".join(sections)


def _helps(root: click.Group) -> Iterator[tuple[str, str]]:
    # A fixed width: the page must not depend on the terminal it was made on.
    top = click.Context(root, info_name="dragoon", terminal_width=100, **root.context_settings)
    yield from _helps_below(top, root)


def _helps_below(context: click.Context, command: click.Command) -> Iterator[tuple[str, str]]:
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _helps_below(click.Context(found, info_name=name, parent=context), found)


@click.command(hidden=True)
@click.argument(
    "page",
    type=click.Choice(
        ["checks", "cli", "configuration", "gang-sources", "metrics", "refusals", "roles"]
    ),
)
@click.pass_context
def command(ctx: click.Context, page: str) -> None:
    """Print a page that is made from the code."""
    root = ctx.find_root().command
    assert isinstance(root, click.Group)  # noqa: S101 - this command hangs below the group
    pages: dict[str, Callable[[], str]] = {
        "checks": diagnoses.checks,
        "cli": lambda: cli_reference(root),
        "configuration": lambda: config.reference() + controller_config.reference(),
        "gang-sources": gang_sources.reference,
        "metrics": lambda: metrics.reference() + gang_metrics.reference(),
        "refusals": refusals.reference,
        "roles": lambda: _ROLES_INTRODUCTION + yaml.safe_dump(permissions.chart_roles(DRIVER_NAME)),
    }
    click.echo(pages[page](), nl=False)
