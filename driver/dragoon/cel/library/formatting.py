"""`format` and `strings.quote` of the strings extension, version 2.

Source: cel-go 0.29 `ext/formatting.go`, `ext/strings.go`; numbers as golang.org/x/text writes them
in American English.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.functions import Dispatch, Library, function, method
from dragoon.cel.library.standard import FUNCTIONS as STANDARD
from dragoon.cel.library.times import FUNCTIONS as TIMES
from dragoon.cel.times import Duration, Timestamp
from dragoon.cel.types import DYN, STRING, list_of
from dragoon.cel.values import UInt, from_key, type_name

_CLAUSE: Final = re.compile(
    r"%(?:(?P<percent>%)|(?:\.0*(?P<precision>[0-9]{1,9}))?(?P<verb>[sdfebxXo]))"
)
_PRECISION: Final = 6
_MOST_DIGITS: Final = 1000
"""Digits after the point that Dragoon writes; a double has no more than 1074."""
_SUPERSCRIPT: Final = str.maketrans(
    "0123456789-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b"
)
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}
_string: Final = Dispatch("string", STANDARD["string"] + TIMES["string"])
_INTEGERS: Final = frozenset((int, UInt))
ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "s": (
        *("list", "map", "int", "uint", "double", "bool", "string", "bytes", "null_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    ),
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
"""Types that each clause can write, by the clause's letter."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a format: plain text, or where verb is set an argument written that way."""

    text: str
    verb: str = ""
    precision: int = _PRECISION


def clauses(format_: str) -> tuple[Clause, ...]:
    """The parts of a format. Raises ExpressionFailedError for a wrong one."""
    found: list[Clause] = []
    position = 0
    while position < len(format_):
        start = format_.find("%", position)
        if start != position:
            end = len(format_) if start < 0 else start
            found.append(Clause(format_[position:end]))
            position = end
            continue
        match = _CLAUSE.match(format_, position)
        if match is None:
            raise ExpressionFailedError(f"format: {format_[start : start + 3]!r} is no clause")
        if match["percent"]:
            found.append(Clause("%"))
        else:
            found.append(Clause("", match["verb"], int(match["precision"] or _PRECISION)))
        position = match.end()
    return tuple(found)


def _format(format_: str, arguments: tuple[Any, ...]) -> str:
    remaining = iter(arguments)
    written: list[str] = []
    for clause in clauses(format_):
        if not clause.verb:
            written.append(clause.text)
            continue
        try:
            value = next(remaining)
        except StopIteration:
            raise ExpressionFailedError("format: more clauses than arguments") from None
        if type_name(value) not in ALLOWED[clause.verb]:
            raise _not_writable(clause.verb, value)
        written.append(_WRITERS[clause.verb](value, clause))
    return "".join(written)


def _not_writable(verb: str, value: Any) -> ExpressionFailedError:
    return ExpressionFailedError(f"format: %{verb} does not write {type_name(value)}")


def _plain(value: Any, _: Clause) -> str:
    if value is None:
        return "null"
    if isinstance(value, tuple | dict):
        return _literal(value)
    return str(_string.find(value)(value))


def _literal(value: Any) -> str:
    """A value inside of a list or a map."""
    if isinstance(value, dict):
        entries = sorted((_key(from_key(key)), _literal(one)) for key, one in value.items())
        return f"{{{', '.join(f'{key}:{one}' for key, one in entries)}}}"
    if type_name(value) not in ALLOWED["s"]:
        raise _not_writable("s", value)
    return _LITERALS.get(type(value), lambda one: _plain(one, Clause("")))(value)


def _double_literal(value: float) -> str:
    if math.isfinite(value):
        return f"{value:.6f}"
    return '"NaN"' if math.isnan(value) else '"+Inf"' if value > 0 else '"-Inf"'


def _key(key: Any) -> str:
    if type(key) not in _INTEGERS | {bool, str}:
        raise _not_writable("s", key)
    return _literal(key)


def _go_quoted(text: str) -> str:
    """As Go's %q writes it: what cannot be printed is escaped."""
    return f'"{"".join(map(_go_escaped, text))}"'


def _go_escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _number(value: Any, verb: str) -> float:
    number = _SPECIAL.get(value) if type(value) is str else value
    if number is None:
        raise _not_writable(verb, value)
    # Zero has no sign here.
    return float(number) or 0.0


def _localized(number: float) -> str:
    return "NaN" if math.isnan(number) else "\u221e" if number > 0 else "-\u221e"


def _fixed(value: Any, clause: Clause) -> str:
    number = _number(value, clause.verb)
    if not math.isfinite(number):
        return _localized(number)
    if clause.precision > _MOST_DIGITS:
        raise ExpressionFailedError(f"format: more than {_MOST_DIGITS} digits after the point")
    return f"{number:,.{clause.precision}f}"


def _scientific(value: Any, clause: Clause) -> str:
    """The number of the clause is the width, to cel-go; the digits are always six."""
    number = _number(value, clause.verb)
    if not math.isfinite(number):
        return _localized(number).rjust(min(clause.precision, _MOST_DIGITS))
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    power = exponent.removeprefix("+").translate(_SUPERSCRIPT)
    return f"{mantissa}\u00d710{power}".rjust(min(clause.precision, _MOST_DIGITS))


def _integer(letter: str) -> Callable[[Any, Clause], str]:
    return lambda value, _: format(int(value), letter)


def _hexadecimal(value: Any, clause: Clause) -> str:
    raw = value.encode() if type(value) is str else value
    text = raw.hex() if type(raw) is bytes else f"{int(raw):x}"
    return text.upper() if clause.verb == "X" else text


def _quote(text: str) -> str:
    return f'"{"".join(_ESCAPES.get(char, char) for char in text)}"'


_LITERALS: Final[dict[type, Callable[[Any], str]]] = {
    float: _double_literal,
    str: _go_quoted,
    bytes: lambda value: f"b{_go_quoted(_plain(value, Clause('')))}",
    Duration: lambda value: f'duration("{value}")',
    Timestamp: lambda value: f'timestamp("{value}")',
    tuple: lambda value: f"[{', '.join(map(_literal, value))}]",
}
"""What is written otherwise inside of a list or a map than by itself."""
_WRITERS: Final[dict[str, Callable[[Any, Clause], str]]] = {
    "s": _plain,
    "d": _integer("d"),
    "f": _fixed,
    "e": _scientific,
    "b": _integer("b"),
    "x": _hexadecimal,
    "X": _hexadecimal,
    "o": _integer("o"),
}

FUNCTIONS: Final[Library] = {
    "format": (method(_format, STRING, list_of(DYN), result=STRING),),
    "strings.quote": (function(_quote, STRING, result=STRING),),
}
