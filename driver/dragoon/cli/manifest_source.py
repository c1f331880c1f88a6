"""Which manifests a command reads: the same options wherever files are given."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from dragoon.cli.given import PATH, TEXT
from dragoon.diagnose.documents import Document, Unreadable, read_files, read_text
from dragoon.diagnose.manifests import Manifests
from dragoon.reading import text_in

_Command = TypeVar("_Command", bound=Callable[..., Any])
_STDIN: Final = Path("-")


def manifest_options(command: _Command) -> _Command:
    """Adds `--filename` and `--namespace`; the command gets them as `files` and `namespace`."""
    command = click.option(
        "-n",
        "--namespace",
        type=TEXT,
        default="default",
        show_default=True,
        help="Of objects without.",
    )(command)
    return click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        required=True,
        type=PATH,
        help="A file or a folder with manifests, - for stdin; may be given again.",
    )(command)


def read(files: Iterable[Path], namespace: str) -> Manifests:
    """What is in the files. Raises InvalidInputError for what cannot be opened."""
    return Manifests.of(_documents(files), namespace=namespace)


def _documents(files: Iterable[Path]) -> Iterator[Document | Unreadable]:
    for file in files:
        if file == _STDIN:
            yield from read_text("stdin", text_in(sys.stdin.buffer, "stdin"))
        else:
            yield from read_files([file])
