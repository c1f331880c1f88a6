"""The settings of the plugin as options of a command: made from the one table in app.config."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from dragoon.app import config

_Command = TypeVar("_Command", bound=Callable[..., Any])


def setting_options(*names: str) -> Callable[[_Command], _Command]:
    """Adds `--config` and an option for each named setting; the command gets them as keywords."""

    def add(command: _Command) -> _Command:
        for name in reversed(names):
            setting = config.SETTINGS[name]
            command = click.option(
                setting.flag, name, default=None, metavar="TEXT", help=setting.text
            )(command)
        return click.option(
            "--config", "file", default=None, metavar="FILE", help="The config file (YAML)."
        )(command)

    return add


def load(options: dict[str, Any]) -> config.PluginConfig:
    """The settings from this command line, the environment and the config file."""
    flags = {name: value for name, value in options.items() if name != "file"}
    return config.load(flags, os.environ, file=options["file"])
