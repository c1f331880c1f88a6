"""Which manifests a command reads: the same options wherever files are given."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from dragoon.cli.given import PATH, TEXT
from dragoon.cli.output import print_note
from dragoon.diagnose.documents import Document, Unreadable, read_files, read_text
from dragoon.diagnose.manifests import Manifests
from dragoon.errors import InvalidInputError
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


def read(files: Sequence[Path], namespace: str) -> Manifests:
    """What is in the files; one with nothing in it is told.

    Raises InvalidInputError for what cannot be opened, and where nothing is in any of them: what
    should have written them has failed.
    """
    documents: list[Document | Unreadable] = []
    empty: list[str] = []
    for file in files:
        found = list(_documents(file))
        documents += found
        if not found:
            empty.append("stdin" if file == _STDIN else str(file))
    every = Manifests.of(documents, namespace=namespace)
    if not every.items and not every.unreadable and not every.foreign:
        named = ", ".join(map(str, files))
        raise InvalidInputError(f"--filename: found no object in {named}, allowed is at least one")
    for one in empty:
        print_note(f"no object in {one}")
    return every


def _documents(file: Path) -> Iterator[Document | Unreadable]:
    if file == _STDIN:
        return read_text("stdin", text_in(sys.stdin.buffer, "stdin"))
    return read_files([file])
