"""`dragoon plugin`: the node process."""

import asyncio
from typing import Any

import click

from dragoon.app import config
from dragoon.cli import settings
from dragoon.telemetry import logs


@click.command()
@settings.setting_options(*config.SETTINGS)
def command(**options: Any) -> None:
    """Run the node process: publish this node's GPUs and prepare claims for its kubelet."""
    found = config.check_plugin(settings.load(options))
    logs.configure(form=found.log_format, level=found.log_level)
    from dragoon.app import plugin_process  # noqa: PLC0415 - a second; wrong settings are told before

    asyncio.run(plugin_process.serve(found))
