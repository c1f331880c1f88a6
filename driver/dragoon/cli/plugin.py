"""`dragoon plugin`: the node process."""

import asyncio
from typing import Any

import click

from dragoon.app import config, plugin
from dragoon.cli import settings
from dragoon.telemetry import logs


@click.command()
@settings.setting_options(*config.SETTINGS)
def command(**options: Any) -> None:
    """Run the node process: publish this node's GPUs and prepare claims for its kubelet."""
    found = settings.load(options)
    logs.configure(form=found.log_format, level=found.log_level)
    asyncio.run(plugin.serve(found))
