"""`dragoon controller`: the process that places gangs."""

import asyncio
import os
from typing import Any

import click

from dragoon.app import controller_config
from dragoon.cli import settings
from dragoon.telemetry import logs


@click.command()
@settings.setting_options(*controller_config.SETTINGS, table=controller_config.SETTINGS)
def command(**options: Any) -> None:
    """Run the controller: place gangs, watch over all claims, wake kubelets that wait."""
    flags = {name: value for name, value in options.items() if name != "file"}
    found = controller_config.load(flags, os.environ, file=options["file"])
    logs.configure(form=found.log_format, level=found.log_level)
    from dragoon.app import controller_process  # noqa: PLC0415 - a second; wrong settings are told before

    asyncio.run(controller_process.serve(found))
