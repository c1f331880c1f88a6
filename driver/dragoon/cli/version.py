"""`dragoon version`."""

import platform

import click

from dragoon import __version__


@click.command()
def command() -> None:
    """Show the version."""
    click.echo(f"dragoon {__version__} (Python {platform.python_version()})")
