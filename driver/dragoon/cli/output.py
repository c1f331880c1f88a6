"""How commands print: tables for people, JSON and YAML for programs.

Piped, a table is plain text: aligned columns, no boxes, never wrapped or cut. With colour it is
drawn by rich, imported only then.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import click
import yaml

from dragoon.api.visible import one_line, typed

Form = Literal["table", "wide", "name", "json", "yaml"]
_Command = TypeVar("_Command", bound=Callable[..., Any])
Tone = Literal["plain", "bad", "good", "faint"]

_STYLES: Final[dict[Tone, str]] = {"plain": "", "bad": "red", "good": "green", "faint": "dim"}
_GAP: Final = "  "
_NAMES: Final = "name: KIND/NAME."


def _form_option(*allowed: Form, text: str) -> Callable[[_Command], _Command]:
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(allowed),
        default=allowed[0],
        show_default=True,
        help=text,
    )


def form_option(command: _Command) -> _Command:
    """Adds `-o` to a command that answers a question; the command gets it as `form`."""
    return _form_option("table", "json", "yaml", text="How to print.")(command)


def list_form_option(command: _Command) -> _Command:
    """Adds `-o` to a command that lists objects, with `wide` and `name` as kubectl has them."""
    text = f"How to print; wide: more columns, and why something is not known; {_NAMES}"
    return _form_option("table", "wide", "name", "json", "yaml", text=text)(command)


def named_form_option(command: _Command) -> _Command:
    """The same without `wide`, where a table has everything."""
    text = f"How to print; {_NAMES}"
    return _form_option("table", "name", "json", "yaml", text=text)(command)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: its text and how it is meant."""

    text: str
    tone: Tone = "plain"


Row = Sequence[Cell | str]


def print_table(header: Sequence[str], rows: Sequence[Row]) -> None:
    """Prints a table on stdout, in colour where this command line prints in colour."""
    cells = [
        [_one_line(Cell(cell) if isinstance(cell, str) else cell) for cell in row] for row in rows
    ]
    if click.get_current_context().color:
        click.echo(_coloured_table(header, cells), nl=False)
    else:
        click.echo(plain_table(header, cells), nl=False)


def _one_line(cell: Cell) -> Cell:
    # What is not there is neither good nor bad.
    return Cell(one_line(cell.text), cell.tone if cell.text else "plain")


def print_data(data: Any, form: Form) -> None:
    """Prints plain data as JSON or YAML on stdout."""
    if form == "json":
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)


def print_names(kind: str, names: Iterable[str]) -> None:
    """Prints objects as other commands take them, `kind/name`, one a line and each once."""
    for one in dict.fromkeys(names):
        click.echo(f"{kind}/{one_line(one)}")


def print_note(text: str) -> None:
    """Something to know beside the answer, on stderr; in one line, whoever wrote it."""
    click.echo(f"note: {one_line(text)}", err=True)


def print_next(*commands: str | tuple[str, ...]) -> None:
    """The commands to type next, on stderr, each once; as words where a blank may be in one."""
    for one in dict.fromkeys(commands):
        click.echo(f"next: {typed(one)}", err=True)


def plain_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Aligned columns; an empty cell is `-`, so that a column can be cut out by blanks."""
    lines = [list(header), *([cell.text or "-" for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        _GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )


def _coloured_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    from rich.console import Console  # noqa: PLC0415 - 90 ms, only where it is used
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, len(_GAP), 0, 0))
    for name in header:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell.text or "-", style=_STYLES[cell.tone]) for cell in row))
    width = len(plain_table(header, rows))  # at least the longest line: nothing is cut
    console = Console(force_terminal=True, width=width, color_system="standard", highlight=False)
    with console.capture() as capture:
        console.print(table)
    return capture.get()
