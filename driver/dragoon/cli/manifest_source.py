"""Which manifests a command reads: the same options wherever files are given."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def manifest_options(command: _Command) -> _Command:
    """Adds `--filename` and `--namespace`; the command gets them as `files` and `namespace`."""
    command = click.option(
        "-n", "--namespace", default="default", show_default=True, help="Of objects without."
    )(command)
    return click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        required=True,
        type=click.Path(path_type=Path),
        help="A file or a folder with manifests; may be given again.",
    )(command)
