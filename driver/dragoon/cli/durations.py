"""Durations as kubectl and Go write them: `30s`, `5m`, `1h30m`."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from dragoon.cel.times import SECOND, parse_duration
from dragoon.errors import InvalidInputError

_Command = TypeVar("_Command", bound=Callable[..., Any])


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


CLUSTER_SECONDS: Final = 120.0
"""How long an API server may take for all its answers where nobody says otherwise."""


def _timeout(
    default: str | None, text: str, *, shown: str | bool = True
) -> Callable[[_Command], _Command]:
    """Adds `--timeout`; the command gets it as `timeout`, in seconds. shown: the default in help."""
    return click.option(
        "--timeout",
        type=SECONDS,
        default=default,
        show_default=shown,
        metavar="DURATION",
        help=text,
    )


def timeout_option(command: _Command) -> _Command:
    """For a command that asks the driver of this node."""
    return _timeout("20s", "How long the driver may take to answer.")(command)


def either_timeout_option(command: _Command) -> _Command:
    """For a command that asks both; it gets None where nobody says how long."""
    text = "How long the driver may take, and the API server for all its answers."
    return _timeout(None, text, shown="20s, and 2m")(command)


def task_timeout_option(command: _Command) -> _Command:
    """For a command of many tasks."""
    return _timeout("1m", "How long each task may take.")(command)


def cluster_timeout_option(command: _Command) -> _Command:
    """For a command that asks an API server: large clusters take many answers."""
    return _timeout("2m", "How long the API server may take for all its answers.")(command)
