"""Which command was called, for messages: a group below the root leaves it where the root finds it."""

from typing import Any, Final

import click

_CALLED: Final = "dragoon.called"
"""In `Context.meta`, which a context shares with those below it."""


class Family(click.Group):
    """A command of several: `dragoon claim new`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command and leaves its name, whatever comes of it."""
        try:
            return super().invoke(ctx)
        finally:
            ctx.meta[_CALLED] = ctx.invoked_subcommand


def called(root: click.Context) -> str:
    """The command that the root ran, `dragoon claim new`."""
    return " ".join(filter(None, ("dragoon", root.invoked_subcommand, root.meta.get(_CALLED))))
