"""A click group that knows its commands by name and imports one only when it runs."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command is: module `dragoon.cli.<module>`, attribute `command`.

    group: the heading of the help under which it stands. alias_of: another name of that command,
    shown beside it; hidden: not shown at all.
    """

    module: str
    text: str
    group: str = ""
    alias_of: str = ""
    hidden: bool = False

    def load(self) -> click.Command:
        """Imports the command."""
        command = importlib.import_module(f"dragoon.cli.{self.module}").command
        assert isinstance(command, click.Command)  # noqa: S101 - a slip in our own table
        return command


class LazyGroup(click.Group):
    """A group whose help is made from the table alone."""

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, hidden ones too, in the order of the table."""
        del ctx
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command; None for a name that is not in the table."""
        del ctx
        found = self.lazy.get(cmd_name)
        return found.load() if found else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, and names the nearest command where there is none of that name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from dragoon.diagnose.near import near  # noqa: PLC0415 - not for --help

            close = near(args[0], (name for name, one in self.lazy.items() if not one.hidden))
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {close!r}?", ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Names and options to complete to, from the table: a shell asks at every key."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - not for --help

        names = [
            CompletionItem(name, help=one.text)
            for name, one in self.lazy.items()
            if name.startswith(incomplete) and not one.hidden
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The tables of the help text, one for each group, without importing anything."""
        del ctx
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.lazy.items():
            if not entry.hidden and not entry.alias_of:
                groups.setdefault(entry.group, []).append((self._names(name), entry.text))
        width = max((len(name) for rows in groups.values() for name, _ in rows), default=0)
        for group, rows in groups.items():
            with formatter.section(group or "Commands"):
                # Padded, so that the texts of all groups begin in one column.
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def _names(self, name: str) -> str:
        others = (other for other, entry in self.lazy.items() if entry.alias_of == name)
        return ", ".join((name, *others))
