"""Durations and timestamps: conversions and parts. There is no clock in CEL.

Source: cel-go 0.29 `common/stdlib`, `common/types/duration.go`, `timestamp.go`. Sums and order:
`operators`. Parts are those in UTC; a time zone as an argument is not supported.
"""

from collections.abc import Callable
from typing import Final

from dragoon.cel.functions import Library, function, method, translated
from dragoon.cel.times import (
    SECOND,
    Duration,
    Timestamp,
    checked_timestamp,
    parse_duration,
    parse_timestamp,
)
from dragoon.cel.types import DURATION, INT, STRING, TIMESTAMP

OF_TIMESTAMPS: Final[dict[str, Callable[[Timestamp], int]]] = {
    "getFullYear": lambda time: time.utc.year,
    "getMonth": lambda time: time.utc.month - 1,
    "getDayOfYear": lambda time: time.utc.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda time: time.utc.day - 1,
    "getDate": lambda time: time.utc.day,
    "getDayOfWeek": lambda time: time.utc.isoweekday() % 7,
}
"""Parts that only timestamps have."""
OF_BOTH: Final[dict[str, tuple[Callable[[Timestamp], int], int]]] = {
    "getHours": (lambda time: time.utc.hour, 3600 * SECOND),
    "getMinutes": (lambda time: time.utc.minute, 60 * SECOND),
    "getSeconds": (lambda time: time.utc.second, SECOND),
    "getMilliseconds": (lambda time: time.nanoseconds % SECOND // 10**6, 10**6),
}
"""Parts of timestamps that are also units (in nanoseconds) of durations."""


def _units(unit: int) -> Callable[[Duration], int]:
    return lambda duration: duration.in_units(unit)


FUNCTIONS: Final[Library] = {
    **{name: (method(part, TIMESTAMP, result=INT),) for name, part in OF_TIMESTAMPS.items()},
    **{
        name: (
            method(part, TIMESTAMP, result=INT),
            method(_units(unit), DURATION, result=INT),
        )
        for name, (part, unit) in OF_BOTH.items()
    },
    "duration": (
        function(lambda duration: duration, DURATION, result=DURATION),
        function(translated(parse_duration), STRING, result=DURATION),
    ),
    "timestamp": (
        function(lambda timestamp: timestamp, TIMESTAMP, result=TIMESTAMP),
        function(
            translated(lambda seconds: checked_timestamp(seconds * SECOND)), INT, result=TIMESTAMP
        ),
        function(translated(parse_timestamp), STRING, result=TIMESTAMP),
    ),
    "int": (
        function(lambda duration: duration.nanoseconds, DURATION, result=INT),
        function(lambda timestamp: timestamp.nanoseconds // SECOND, TIMESTAMP, result=INT),
    ),
    "string": (
        function(str, DURATION, result=STRING),
        function(str, TIMESTAMP, result=STRING),
    ),
}
