"""Text to tokens, by the lexical rules of CEL (github.com/google/cel-spec, cel-go 0.29 grammar)."""

import math
import re
from dataclasses import dataclass
from typing import Any, Final

from dragoon.cel.errors import Source
from dragoon.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_TOKEN: Final = re.compile(
    r"""
    (?P<space>[\t \r\n\f]+|//[^\n]*)
  | (?P<string>[bB]?[rR]?(?:\"{3}|'{3}|["']))
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<ident>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<op>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<char>[abfnrtv\"'\\?`])|[xX](?P<byte>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<bad>.?))",
    re.DOTALL,
)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORDS: Final = {"true": True, "false": False, "null": None}
_MOST_DIGITS: Final = 20
"""Digits of the largest uint."""
_MOST_CODE_POINTS: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class Token:
    """kind is `ident`, `op`, `literal` or `end`. value: a literal's value."""

    kind: str
    text: str
    start: int
    end: int
    value: Any = None


def tokens(source: Source) -> list[Token]:
    """All tokens, the last one of kind `end`. Raises CompileError where no token begins."""
    found: list[Token] = []
    offset = 0
    text = source.text
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise source.wrong(offset, _unknown(text, offset))
        end = match.end()
        kind = str(match.lastgroup)
        if kind == "string":
            token = _string(source, match)
            end = token.end
            found.append(token)
        elif kind != "space":
            found.append(_plain(source, kind, match))
        offset = end
    found.append(Token("end", "", len(text), len(text)))
    return found


def negated(source: Source, minus: Token, number: Token) -> Token:
    """The literal that a minus sign and a number make: -2**63 is one, 2**63 is not."""
    value = -number.value
    token = Token("literal", minus.text + number.text, minus.start, number.end, value)
    if not isinstance(value, float):
        _check_range(source, token, INT_MIN, INT_MAX, "int")
    return token


def _plain(source: Source, kind: str, match: re.Match[str]) -> Token:
    text, start, end = match.group(), match.start(), match.end()
    if kind == "op":
        return Token("op", text, start, end)
    if kind == "ident":
        if text in _WORDS:
            return Token("literal", text, start, end, _WORDS[text])
        return Token("ident", text, start, end)
    if kind == "float":
        if math.isinf(float(text)):
            raise source.wrong(start, f"{text} does not fit the type double")
        return Token("literal", text, start, end, float(text))
    digits = text.rstrip("uU")
    if len(digits.lstrip("0")) > _MOST_DIGITS:
        raise source.wrong(start, f"{text[:_MOST_DIGITS]}... does not fit 64 bits")
    number = int(digits, 16 if digits.startswith("0x") else 10)
    if kind == "int":
        # Range is checked by the parser: a minus sign may stand before it.
        return Token("literal", text, start, end, number)
    token = Token("literal", text, start, end, UInt(number))
    _check_range(source, token, 0, UINT_MAX, "uint")
    return token


def check_int(source: Source, token: Token) -> None:
    """Raises CompileError for a literal int beyond 64 bits."""
    if type(token.value) is int:
        _check_range(source, token, INT_MIN, INT_MAX, "int")


def _check_range(source: Source, token: Token, lowest: int, highest: int, name: str) -> None:
    if not lowest <= token.value <= highest:
        raise source.wrong(token.start, f"{token.text} does not fit the type {name}")


def _string(source: Source, match: re.Match[str]) -> Token:
    """A string or bytes literal whose opening quote has been matched."""
    opening = match.group()
    prefix = opening.rstrip("\"'").lower()
    quote = opening[len(prefix) :]
    text, start, body = source.text, match.start(), match.end()
    raw = "r" in prefix
    position = body
    while not text.startswith(quote, position):
        if position >= len(text) or (len(quote) == 1 and text[position] in "\r\n"):
            raise source.wrong(start, "the string has no closing quote")
        position += 2 if text[position] == "\\" and not raw else 1
    end = position + len(quote)
    content = text[body:position]
    value: str | bytes
    if "b" in prefix:
        value = content.encode() if raw else _unescape_bytes(source, body, content)
    else:
        value = content if raw else _unescape(source, body, content)
    return Token("literal", text[start:end], start, end, value)


def _unescape(source: Source, base: int, content: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match["char"]:
            return _ESCAPED.get(match["char"], match["char"])
        if match["bad"] is not None:
            raise source.wrong(base + match.start(), f"unknown escape {match.group()!r}")
        digits = match["byte"] or match["short"] or match["long"]
        number = int(match["octal"], 8) if match["octal"] else int(digits, 16)
        if number > _MOST_CODE_POINTS or number in _SURROGATES:
            raise source.wrong(base + match.start(), f"{match.group()} is no character")
        return chr(number)

    return _ESCAPE.sub(one, content)


def _unescape_bytes(source: Source, base: int, content: str) -> bytes:
    def one(match: re.Match[str]) -> str:
        if match["char"]:
            return _ESCAPED.get(match["char"], match["char"])
        if match["byte"] or match["octal"]:
            return chr(int(match["octal"], 8) if match["octal"] else int(match["byte"], 16))
        raise source.wrong(base + match.start(), f"{match.group()!r} is no escape for bytes")

    parts: list[bytes] = []
    last = 0
    for match in _ESCAPE.finditer(content):
        parts += (content[last : match.start()].encode(), one(match).encode("latin-1"))
        last = match.end()
    return b"".join((*parts, content[last:].encode()))


def _unknown(text: str, offset: int) -> str:
    if text[offset] == "=":
        return "'=' is no operator, write '==' to compare"
    if text[offset] in "&|":
        return f"{text[offset]!r} is no operator, write {text[offset] * 2!r}"
    return f"unexpected character {text[offset]!r}"
