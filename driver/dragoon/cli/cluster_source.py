"""Where explain and simulate look: the live cluster, or a saved one. Nothing is written there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dragoon.cli.asking import ask, kubeconfig_option
from dragoon.cli.given import PATH
from dragoon.diagnose import saving
from dragoon.diagnose.snapshot import ClusterSnapshot

_Command = TypeVar("_Command", bound=Callable[..., Any])

_TAKE_SNAPSHOTS = (
    *("dragoon status", "dragoon explain", "dragoon check", "dragoon devices", "dragoon simulate"),
    *("dragoon lint", "dragoon gangs show"),
)

snapshot_option = click.option(
    "--snapshot", type=PATH, help="Look at this saved cluster instead of the live one."
)
"""The command gets it as `snapshot`, None where it was not given."""


def source_options(command: _Command) -> _Command:
    """Adds the options that say where to look; the command gets them as keywords."""
    command = click.option(
        "--save", type=PATH, help="Save what was looked at into this new folder, to send it."
    )(command)
    command = kubeconfig_option(command)
    return snapshot_option(command)


def look(
    snapshot: Path | None,
    kubeconfig: Path | None,
    save: Path | None,
    seconds: float | None = None,
) -> ClusterSnapshot:
    """What is there. With save it is written into that folder, and said so on stderr.

    seconds: how long an API server may take.
    """
    found = _live(kubeconfig, seconds) if snapshot is None else saving.load(snapshot)
    if save is not None:
        keep(found, save)
    if not found.gangs:
        return found
    from dragoon.app.gang_members import with_members  # noqa: PLC0415 - only where there are gangs

    return with_members(found)


def keep(found: ClusterSnapshot, folder: Path) -> None:
    """Saves what was looked at into a new folder, and says so on stderr."""
    files = saving.save(found, folder)
    click.echo(f"saved {len(files)} files in {folder}", err=True)


def looking_at(command: str, snapshot: Path | None, file: Path | None = None) -> tuple[str, ...]:
    """The words to type next, about the same saved cluster as this one. file: for its `-f`."""
    words = [*command.split(), *(("-f", str(file)) if file else ())]
    if snapshot is not None and command.startswith(_TAKE_SNAPSHOTS):
        words += ["--snapshot", str(snapshot)]
    return tuple(words)


def _live(kubeconfig: Path | None, seconds: float | None) -> ClusterSnapshot:
    # Imported here: half a second, and a saved cluster needs none of it.
    from dragoon.diagnose.gathering import gather  # noqa: PLC0415

    return ask(kubeconfig, lambda api: gather(api, source=api.server), seconds)
