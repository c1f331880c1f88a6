"""Durations as kubectl and Go write them: `30s`, `5m`, `1h30m`."""

from typing import Any, Final

import click

from dragoon.cel.times import SECOND, parse_duration
from dragoon.errors import InvalidInputError


class _Seconds(click.ParamType[float]):
    """An option whose value is a duration; the command gets seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            seconds = parse_duration(str(value)).nanoseconds / SECOND
        except InvalidInputError:
            seconds = 0.0
        if seconds <= 0:
            self.fail(f"found {value!r}, allowed is such as 30s, 5m or 1h30m", param, ctx)
        return seconds


SECONDS: Final = _Seconds()

timeout_option = click.option(
    "--timeout",
    type=SECONDS,
    default="20s",
    show_default=True,
    metavar="DURATION",
    help="How long the driver may take to answer.",
)
"""The command gets it as `timeout`, in seconds."""
