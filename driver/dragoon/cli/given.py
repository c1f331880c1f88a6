"""Values of options, which are never empty: a shell's variable that is not set means nothing.

An empty path would be the current folder, an empty name another namespace or no filter at all.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from dragoon.api.names import DRIVER_NAME, check_driver_name
from dragoon.errors import InvalidInputError

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Text(click.ParamType[str]):
    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            self.fail("found nothing, allowed is some text", param, ctx)
        return str(value)


class _Path(click.Path):
    def convert(
        self,
        value: "str | os.PathLike[str]",
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        if not os.fspath(value):
            self.fail("found nothing, allowed is a file or a folder", param, ctx)
        return super().convert(value, param, ctx)


class _DriverName(_Text):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return check_driver_name(super().convert(value, param, ctx))
        except InvalidInputError as error:
            self.fail(error.message, param, ctx)


TEXT: Final = _Text()
PATH: Final = _Path(path_type=Path)
"""The command gets a Path, whether there is such a file or not."""

_DRIVER: Final = _DriverName()


def driver_name_option(command: _Command) -> _Command:
    """Adds `--driver-name`; the command gets it as `driver_name`."""
    return click.option(
        "--driver-name",
        type=_DRIVER,
        default=DRIVER_NAME,
        show_default=True,
        help="The driver's name.",
    )(command)
