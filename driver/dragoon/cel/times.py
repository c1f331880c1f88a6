"""Durations and timestamps as values, by the rules of cel-go 0.29 and Go's `time`."""

import datetime as dt
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from dragoon.errors import InvalidInputError

SECOND: Final = 10**9
"""Nanoseconds."""
_MINUTE: Final = 60 * SECOND
_HOUR: Final = 60 * _MINUTE
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": _MINUTE,
    "h": _HOUR,
}
_PART: Final = re.compile(
    r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>ns|us|\u00b5s|\u03bcs|ms|s|m|h)",
    re.ASCII,
)
_LONGEST: Final = 2**63
_MOST_DIGITS: Final = 300
"""Digits that are read: more make a whole too large, and a fraction no different."""
_TIMESTAMP: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})T(?P<hour>[0-9]{1,2})"
    r":(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>[0-9]{2}):(?P<minutes>[0-9]{2}))",
    re.ASCII,
)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - arithmetic in UTC only
_FIRST: Final = -62135596800 * SECOND
_LAST: Final = 253402300800 * SECOND - 1
_MOST_OFFSET_HOURS: Final = 24
_MOST_OFFSET_MINUTES: Final = 60


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds, within 64 bits."""

    nanoseconds: int

    def in_units(self, unit: int) -> int:
        """Whole units of so many nanoseconds, computed as Go does: as a double, cut."""
        sign = -1 if self.nanoseconds < 0 else 1
        whole, rest = divmod(abs(self.nanoseconds), unit)
        return sign * int(float(whole) + float(rest) / unit)

    def __str__(self) -> str:
        sign = -1 if self.nanoseconds < 0 else 1
        whole, rest = divmod(abs(self.nanoseconds), SECOND)
        seconds = sign * (float(whole) + float(rest) / SECOND)
        text = f"{Decimal(repr(seconds)):f}"
        return f"{text.removesuffix('.0') if seconds else '0'}s"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time. nanoseconds: since 1970 in UTC; offset: minutes that its text is ahead."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)

    @property
    def utc(self) -> dt.datetime:
        """The point in time in UTC, without what is below a second."""
        return _EPOCH + dt.timedelta(seconds=self.nanoseconds // SECOND)

    def __str__(self) -> str:
        local = self.utc + dt.timedelta(minutes=self.offset)
        rest = self.nanoseconds % SECOND
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        hours, minutes = divmod(abs(self.offset), 60)
        sign = "-" if self.offset < 0 else "+"
        zone = f"{sign}{hours:02d}:{minutes:02d}" if self.offset else "Z"
        return f"{local.isoformat(timespec='seconds')}{fraction}{zone}"


def is_zero(value: Duration | Timestamp) -> bool:
    """Whether this is Go's zero value: no time at all, or the first instant of the year 1."""
    return value.nanoseconds == (0 if isinstance(value, Duration) else _FIRST)


def checked_duration(nanoseconds: int) -> Duration:
    """A computed duration. Raises InvalidInputError beyond 64 bits."""
    if not -_LONGEST <= nanoseconds < _LONGEST:
        raise InvalidInputError("duration: integer overflow")
    return Duration(nanoseconds)


def checked_timestamp(nanoseconds: int, offset: int = 0) -> Timestamp:
    """A computed timestamp. Raises InvalidInputError outside of the years 1 to 9999."""
    if not _FIRST <= nanoseconds <= _LAST:
        raise InvalidInputError("timestamp: out of range")
    return Timestamp(nanoseconds, offset)


def parse_duration(text: str) -> Duration:
    """A text such as `1h30m` or `-1.5s`. Raises InvalidInputError."""
    wrong = InvalidInputError(f"duration: found {text!r}, allowed is such as 1h30m or -1.5s")
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    if unsigned == "0":
        return Duration(0)
    position, total = 0, 0
    while position < len(unsigned):
        match = _PART.match(unsigned, position)
        if match is None or not (match["whole"] or match["fraction"]):
            raise wrong
        total += _part(match)
        position = match.end()
    nanoseconds = -total if text.startswith("-") else total
    if not unsigned or total > _LONGEST or nanoseconds == _LONGEST:
        raise wrong
    return Duration(nanoseconds)


def _part(match: re.Match[str]) -> int:
    unit = _UNITS[match["unit"]]
    digits = (match["fraction"] or "")[:_MOST_DIGITS]
    kept = next(n for n in range(len(digits), -1, -1) if int(digits[:n] or 0) <= _LONGEST)
    rest = int(float(int(digits[:kept] or 0)) * (float(unit) / 10.0**kept))
    whole = match["whole"].lstrip("0")[:_MOST_DIGITS]
    return int(whole or 0) * unit + rest


def parse_timestamp(text: str) -> Timestamp:
    """A text of RFC 3339, as leniently as Go reads it. Raises InvalidInputError."""
    wrong = InvalidInputError(f"timestamp: found {text!r}, allowed is such as 2026-01-31T23:59:59Z")
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise wrong
    hours, minutes = int(match["hours"] or 0), int(match["minutes"] or 0)
    if hours > _MOST_OFFSET_HOURS or minutes > _MOST_OFFSET_MINUTES:
        raise wrong
    offset = (60 * hours + minutes) * (-1 if match["sign"] == "-" else 1)
    year, month, day = (int(match[name]) for name in ("year", "month", "day"))
    hour, minute, second = (int(match[name]) for name in ("hour", "minute", "second"))
    try:
        local = dt.datetime.combine(dt.date(year, month, day), dt.time(hour, minute, second))
    except ValueError as error:
        raise wrong from error
    span = local - _EPOCH
    seconds = span.days * 86400 + span.seconds - 60 * offset
    fraction = int((match["fraction"] or "")[:9].ljust(9, "0"))
    return checked_timestamp(seconds * SECOND + fraction, offset)
