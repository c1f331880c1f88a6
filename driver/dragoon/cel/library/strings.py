"""The strings extension, version 2. Positions count characters, not bytes.

Source: cel-go 0.29 `ext/strings.go`.
"""

from collections.abc import Callable
from typing import Any, Final

from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.functions import Library, Overload, method
from dragoon.cel.library.operators import check_size
from dragoon.cel.types import INT, STRING, Type, list_of

_STRINGS: Final = list_of(STRING)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What Go's unicode.IsSpace says; Python's strip() takes more."""


def _out_of_range(index: int) -> ExpressionFailedError:
    return ExpressionFailedError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old)
    if count >= 0:
        found = min(found, count)
    check_size(len(text) + found * len(new))
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, count: int = -1) -> tuple[str, ...]:
    if count == 0:
        return ()
    if separator:
        return tuple(text.split(separator, count - 1 if count > 0 else -1))
    if count < 0 or count >= len(text):
        return tuple(text)
    return (*text[: count - 1], text[count - 1 :])


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = len(text)
        if not 0 <= start <= end:
            raise _out_of_range(start)
    if start > end:
        raise ExpressionFailedError(f"invalid substring range: {start} to {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _join(parts: tuple[Any, ...], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise ExpressionFailedError(f"join: {part} is no string")
    check_size(sum(map(len, parts)) + len(parts) * len(separator))
    return separator.join(parts)


def _lower(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LOWER)


def _upper(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER)


def _text_method(run: Callable[..., str], *params: Type) -> Overload:
    return method(run, STRING, *params, result=STRING)


FUNCTIONS: Final[Library] = {
    "charAt": (_text_method(_char_at, INT),),
    "indexOf": (
        method(_index_of, STRING, STRING, result=INT),
        method(_index_of, STRING, STRING, INT, result=INT),
    ),
    "lastIndexOf": (
        method(_last_index_of, STRING, STRING, result=INT),
        method(_last_index_of, STRING, STRING, INT, result=INT),
    ),
    "lowerAscii": (_text_method(_lower),),
    "upperAscii": (_text_method(_upper),),
    "replace": (
        _text_method(_replace, STRING, STRING),
        _text_method(_replace, STRING, STRING, INT),
    ),
    "split": (
        method(_split, STRING, STRING, result=_STRINGS),
        method(_split, STRING, STRING, INT, result=_STRINGS),
    ),
    "substring": (_text_method(_substring, INT), _text_method(_substring, INT, INT)),
    "trim": (_text_method(lambda text: text.strip(_SPACE)),),
    "join": (
        method(_join, _STRINGS, result=STRING),
        method(_join, _STRINGS, STRING, result=STRING),
    ),
}
