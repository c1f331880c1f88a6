"""size(), conversions and the string tests of CEL's standard library, with RE2 for matches().

Source: cel-go 0.29 `common/stdlib`; regex functions: k8s.io/apiserver 0.37 `cel/library/regex.go`.
"""

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import re2

from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.functions import Library, function, method
from dragoon.cel.library.operators import int_result, uint_result
from dragoon.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    STRING,
    UINT,
    list_of,
    map_of,
    parameter,
)
from dragoon.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_A: Final = parameter("A")
_LIST: Final = list_of(_A)
_MAP: Final = map_of(_A, parameter("B"))
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]+", re.ASCII)
_DIGITS: Final = "[0-9](?:_?[0-9])*"
_FLOAT: Final = re.compile(
    rf"[+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?(?:e[+-]?{_DIGITS})?|\.{_DIGITS}(?:e[+-]?{_DIGITS})?"
    "|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]{1,4}", re.ASCII | re.IGNORECASE
)
_LONGEST_INTEGER: Final = 40
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_QUIET: Final = re2.Options()
_QUIET.log_errors = False
_EXPONENT_FROM: Final = 6
"""The power of ten from which Go writes an exponent when it writes the shortest text."""
_KEPT_PATTERNS: Final = 256
_KEPT_MATCHES: Final = 8192
_SHORT: Final = 128
"""Characters of a text whose match is remembered: longer than any attribute."""


@lru_cache(maxsize=_KEPT_PATTERNS)
def pattern(text: str) -> Any:
    """A compiled RE2 expression. Raises ExpressionFailedError where RE2 refuses it."""
    try:
        return re2.compile(text, _QUIET)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        if isinstance(detail, bytes):
            detail = detail.decode(errors="replace")
        raise ExpressionFailedError(f"invalid regular expression {text!r}: {detail}") from error


def matches(text: str, expression: str) -> bool:
    """Whether the expression matches anywhere in the text."""
    if len(text) > _SHORT:
        return pattern(expression).search(text) is not None
    return _matches_short(text, expression)


@lru_cache(maxsize=_KEPT_MATCHES)
def _matches_short(text: str, expression: str) -> bool:
    """Remembered, because the devices of a cluster share few texts and RE2's wrapper is slow."""
    return pattern(expression).search(text) is not None


def _find(text: str, expression: str) -> str:
    found = pattern(expression).search(text)
    return "" if found is None else str(found.group())


def _find_all(text: str, expression: str, limit: int = -1) -> tuple[str, ...]:
    found: list[str] = []
    for match in pattern(expression).finditer(text):
        if 0 <= limit <= len(found):
            break
        found.append(match.group())
    return tuple(found)


def _string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _no_conversion(text, "bool")


def _string_to_int(text: str) -> int:
    if not _INTEGER.fullmatch(text) or len(text) > _LONGEST_INTEGER:
        raise _no_conversion(text, "int")
    return int_result(int(text))


def _string_to_uint(text: str) -> UInt:
    if not _UNSIGNED.fullmatch(text) or len(text) > _LONGEST_INTEGER:
        raise _no_conversion(text, "uint")
    return uint_result(int(text))


def _string_to_double(text: str) -> float:
    if _HEXADECIMAL.fullmatch(text):
        return float.fromhex(text)
    if not _FLOAT.fullmatch(text):
        raise _no_conversion(text, "double")
    value = float(text)
    if math.isinf(value) and "n" not in text.lower():
        raise _no_conversion(text, "double")
    return value


def _double_to_int(value: float) -> int:
    # The largest doubles below 2**63 are far from it; cel-go excludes both ends.
    if not INT_MIN < value < INT_MAX:
        raise ExpressionFailedError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> UInt:
    if not 0 <= value < UINT_MAX:
        raise ExpressionFailedError("unsigned integer overflow")
    return UInt(int(value))


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ExpressionFailedError("invalid UTF-8 in bytes, cannot convert to string") from error


def _double_to_string(value: float) -> str:
    """The shortest text that reads back, as Go's %g writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1 if value else 0
    if -5 < power < _EXPONENT_FROM:
        plain = f"{Decimal(text).scaleb(power - len(text) + 1):f}"
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        plain = f"{text[0]}{fraction}e{power:+03d}"
    return f"-{plain}" if sign else plain


def _no_conversion(text: str, wanted: str) -> ExpressionFailedError:
    return ExpressionFailedError(f"type conversion error: {text!r} is no {wanted}")


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    return str(int(value))


FUNCTIONS: Final[Library] = {
    "size": tuple(
        make(len, type_, result=INT)
        for type_ in (BYTES, _LIST, _MAP, STRING)
        for make in (function, method)
    ),
    "dyn": (function(_same, _A, result=DYN),),
    "bool": (
        function(_same, BOOL, result=BOOL),
        function(_string_to_bool, STRING, result=BOOL),
    ),
    "bytes": (
        function(_same, BYTES, result=BYTES),
        function(lambda text: text.encode(), STRING, result=BYTES),
    ),
    "double": (
        function(_same, DOUBLE, result=DOUBLE),
        function(float, INT, result=DOUBLE),
        function(float, UINT, result=DOUBLE),
        function(_string_to_double, STRING, result=DOUBLE),
    ),
    "int": (
        function(_same, INT, result=INT),
        function(_double_to_int, DOUBLE, result=INT),
        function(_string_to_int, STRING, result=INT),
        function(lambda value: int_result(int(value)), UINT, result=INT),
    ),
    "uint": (
        function(_same, UINT, result=UINT),
        function(_double_to_uint, DOUBLE, result=UINT),
        function(uint_result, INT, result=UINT),
        function(_string_to_uint, STRING, result=UINT),
    ),
    "string": (
        function(_same, STRING, result=STRING),
        function(lambda value: "true" if value else "false", BOOL, result=STRING),
        function(_bytes_to_string, BYTES, result=STRING),
        function(_double_to_string, DOUBLE, result=STRING),
        function(_text, INT, result=STRING),
        function(_text, UINT, result=STRING),
    ),
    "contains": (method(lambda text, part: part in text, STRING, STRING, result=BOOL),),
    "startsWith": (
        method(
            lambda text, part: text.startswith(part),
            STRING,
            STRING,
            result=BOOL,
        ),
    ),
    "endsWith": (method(lambda text, part: text.endswith(part), STRING, STRING, result=BOOL),),
    "matches": (
        function(matches, STRING, STRING, result=BOOL),
        method(matches, STRING, STRING, result=BOOL),
    ),
    "find": (method(_find, STRING, STRING, result=STRING),),
    "findAll": (
        method(_find_all, STRING, STRING, result=list_of(STRING)),
        method(_find_all, STRING, STRING, INT, result=list_of(STRING)),
    ),
}
