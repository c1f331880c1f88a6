"""The settings of a process as options of a command: made from the one table in app."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from dragoon.api.names import check_driver_name
from dragoon.app import config
from dragoon.app.setting import Setting
from dragoon.cli.given import TEXT

_Command = TypeVar("_Command", bound=Callable[..., Any])


def setting_options(
    *names: str, table: Mapping[str, Setting] = config.SETTINGS
) -> Callable[[_Command], _Command]:
    """Adds `--config` and an option for each named setting; the command gets them as keywords."""

    def add(command: _Command) -> _Command:
        for name in reversed(names):
            setting = table[name]
            command = click.option(
                setting.flag, name, default=None, metavar="TEXT", help=setting.text
            )(command)
        return click.option(
            "--config", "file", type=TEXT, metavar="FILE", help="The config file (YAML)."
        )(command)

    return add


def load(options: dict[str, Any]) -> config.PluginConfig:
    """The plugin's settings from this command line, the environment and the config file.

    Raises InvalidInputError, also for a machine to be simulated that there is not: a command that
    goes on where the driver is missing would answer for a node without GPUs.
    """
    flags = {name: value for name, value in options.items() if name != "file"}
    found = config.load(flags, os.environ, file=options["file"])
    check_driver_name(found.driver_name)
    if found.simulate and "simulate" in flags:
        from dragoon.gpu.sim.profiles import find_machine  # noqa: PLC0415 - only where it is simulated

        find_machine(found.simulate)
    return found
