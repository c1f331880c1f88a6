"""`dragoon demo`: plays the story of app.demo on the terminal."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from dragoon.cli.output import print_table

MACHINE: Final = "dgx-h100"
_INDENT: Final = "    "


class Terminal:
    """Implements `app.demo.stage.Teller` on stdout."""

    def section(self, title: str) -> None:
        click.echo()
        click.secho(f"== {title}", bold=True, fg="cyan")

    def say(self, text: str) -> None:
        click.echo(text)

    def block(self, label: str, text: str) -> None:
        click.secho(f"{label}:", bold=True)
        for line in text.splitlines():
            click.secho(_INDENT + line, fg="green")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        print_table(header, rows)


@click.command()
def command() -> None:
    """Show the main job on this machine: no cluster, no GPU."""
    click.echo(f"Starting a simulated node ({MACHINE}) and the real plugin ...")
    asyncio.run(_play())


def how_called(argument: str, folder: Path) -> str:
    """How the reader calls this program: as it was called, where that is below the folder."""
    called = Path(argument)
    if called.name == "__main__.py":
        return "python -m dragoon"
    if called.is_absolute() and called.is_relative_to(folder):
        return str(called.relative_to(folder))
    return called.name


async def _play() -> None:
    # Imported after the first line is out: half a second.
    from dragoon.app.demo import embedded, story  # noqa: PLC0415
    from dragoon.telemetry import logs  # noqa: PLC0415

    logs.configure(level="error")  # of the stand-ins; the plugin has a log of its own
    playing = asyncio.current_task()
    assert playing is not None  # noqa: S101 - asyncio.run made it
    # Ctrl-C cancels by itself; a SIGTERM must stop the children too.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, playing.cancel)
    try:
        async with embedded.opened(MACHINE) as stage:
            await story.tell(stage, Terminal(), program=how_called(sys.argv[0], Path.cwd()))
    except asyncio.CancelledError as error:
        raise click.Abort from error
