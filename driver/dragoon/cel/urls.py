"""URLs as values, read and written as Go's `net/url` does (Go 1.26, which builds Kubernetes 1.37).

A text is worked on as its UTF-8 bytes, one character per byte, as Go does.
"""

import re
import string
from dataclasses import dataclass, field
from typing import Final

from dragoon.cel.addresses import parse_address
from dragoon.errors import InvalidInputError

_UNRESERVED: Final = frozenset(string.ascii_letters + string.digits + "-_.~")
_HOST: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_PATH: Final = _UNRESERVED | frozenset("$&+,/:;=@")
_USER: Final = _UNRESERVED | frozenset("$&+,;=")
_FRAGMENT: Final = _UNRESERVED | frozenset("$&+,/:;=?@!()*")
_VALID_ENCODED: Final = frozenset("!$&'()*+,;=:@[]%")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USER_INFO: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile(r":[0-9]*")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_STRICT_SCHEMES: Final = frozenset(("http", "https"))
"""Schemes whose host may hold no colon but the one before the port."""


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL. text: as Go writes it, by which two are compared; query: without the `?`."""

    text: str
    scheme: str = field(compare=False)
    host: str = field(compare=False)
    escaped_path: str = field(compare=False)
    query: str = field(compare=False)

    @property
    def port(self) -> str:
        """The digits after the host, empty where there are none."""
        return self._split()[1]

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        host = self._split()[0]
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    def _split(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        return (host, port) if colon and _PORT.fullmatch(colon + port) else (self.host, "")

    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The query's values by name; what cannot be read is left out."""
        found: dict[str, tuple[str, ...]] = {}
        for pair in self.query.split("&"):
            name, _, value = pair.partition("=")
            if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
                continue
            key = _text(_unescaped(_bytes(name.replace("+", " "))))
            found[key] = (*found.get(key, ()), _text(_unescaped(_bytes(value.replace("+", " ")))))
        return found

    def __str__(self) -> str:
        return self.text


def parse_url(text: str) -> Url:
    """An absolute URL or an absolute path. Raises InvalidInputError for what `url()` refuses."""
    raw = _bytes(text)
    check_request_uri(text)
    before, _, fragment = raw.partition("#")
    # `#` in front of everything leaves nothing to parse; the check above refuses that.
    parts = _parse(before)
    end = ""
    if fragment:
        _check_escapes(fragment)
        end = "#" + _kept_or_escaped(fragment, _FRAGMENT)
    return Url(
        scheme=_text(parts.scheme),
        host=_text(parts.host),
        escaped_path=_text(parts.path),
        query=_text(parts.query),
        text=_text(parts.written() + end),
    )


def check_request_uri(text: str) -> None:
    """Raises InvalidInputError for a text that `isURL()` says no to."""
    raw = _bytes(text)
    if not raw:
        raise _wrong(raw, "it is empty")
    if raw != "*" and not raw.startswith("/") and not _SCHEME.match(raw):
        raise _wrong(raw, "it has no scheme")
    _parse(raw, request=True)


@dataclass(frozen=True, slots=True)
class _Parts:
    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    no_host: bool = False
    path: str = ""
    query: str = ""
    question_mark: bool = False

    def written(self) -> str:
        """The URL as Go writes it, without a fragment."""
        whole = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            whole += self.opaque
        else:
            whole += self._authority() + self.path
        return whole + (f"?{self.query}" if self.query or self.question_mark else "")

    def _authority(self) -> str:
        if not self.scheme and not self.host and self.user is None:
            return ""
        if self.no_host and not self.host and self.user is None:
            return ""
        slashes = "//" if self.host or self.path or self.user is not None else ""
        user = "" if self.user is None else f"{self.user}@"
        return slashes + user + _escaped(self.host, _HOST)


def _parse(raw: str, *, request: bool = False) -> _Parts:
    """With request, as `isURL()` reads it: without a scheme there is no host, only a path."""
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in raw):
        raise _wrong(raw, "it has control characters")
    if raw == "*":
        return _Parts(path="*")
    match = _SCHEME.match(raw)
    scheme = match.group().lower() if match else ""
    rest = raw[match.end() + 1 :] if match else raw
    question_mark = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if scheme and not rest.startswith("/"):
        return _Parts(scheme, opaque=rest, query=query, question_mark=question_mark)
    user, host, path = None, "", rest
    if rest.startswith("//") and (scheme or not (request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(scheme, authority)
        path, no_host = slash + path, False
    else:
        no_host = bool(scheme)
    _check_escapes(path)
    path = _kept_or_escaped(path, _PATH)
    return _Parts(scheme, "", user, host, no_host, path, query, question_mark)


def _authority(scheme: str, authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    if not at:
        return None, _host(scheme, host)
    read = _host(scheme, host)
    if not _USER_INFO.fullmatch(user):
        raise _wrong(user, "that is no user")
    _check_escapes(user)
    name, colon, password = user.partition(":")
    return _again(name) + (f":{_again(password)}" if colon else ""), read


def _again(part: str) -> str:
    return _escaped(_unescaped(part), _USER)


def _host(scheme: str, host: str) -> str:
    if "[" in host:
        return _bracketed(host)
    first = host.find(":")
    if first >= 0:
        start = first if scheme in _STRICT_SCHEMES else host.rfind(":")
        _check_port(host[start:])
    return _unescaped_host(host)


def _bracketed(host: str) -> str:
    """`[2001:db8::1]:80`, with a zone after `%25` perhaps."""
    closing = host.rfind("]")
    if host.rfind("[") != 0 or closing < 0:
        raise _wrong(host, "brackets belong around an IPv6 address")
    _check_port(host[closing + 1 :])
    inner = host[1:closing]
    address, percent, zone = inner.partition("%25")
    name = _unescaped_host(address)
    if percent:
        _check_zone(zone)
        if not zone:
            raise _wrong(host, "its zone is empty")
    if ":" not in name or not _is_ipv6(name):
        raise _wrong(host, "brackets belong around an IPv6 address")
    return f"[{name}{_unescaped(percent + zone)}]{host[closing + 1 :]}"


def _is_ipv6(text: str) -> bool:
    lowest = text.lower()
    try:
        # Addresses of IPv4 in IPv6 are fine here.
        return parse_address(lowest.replace("::ffff:", "::fffe:")).version == 6
    except InvalidInputError:
        return False


def _check_zone(zone: str) -> None:
    for position, char in enumerate(zone):
        if char == "%":
            value = _ESCAPE.match(zone, position)
            if value is None:
                raise _wrong(zone, "a % stands before two hexadecimal digits")
            byte = chr(int(value[1], 16))
            if value.group() != "%25" and byte != " " and byte not in _HOST:
                raise _wrong(zone, f"{value.group()} is not allowed there")
        elif ord(char) < 0x80 and char not in _HOST:
            raise _wrong(zone, f"{char!r} is not allowed there")


def _check_port(text: str) -> None:
    if text and not _PORT.fullmatch(text):
        raise _wrong(text, "that is no port")


def _unescaped_host(host: str) -> str:
    _check_escapes(host)
    for escape in _ESCAPE.finditer(host):
        if int(escape[1][0], 16) < 8 and escape.group() != "%25":
            raise _wrong(host, f"{escape.group()} is not allowed there")
    for char in host:
        if ord(char) < 0x80 and char != "%" and char not in _HOST:
            raise _wrong(host, f"{char!r} is not allowed there")
    return _unescaped(host)


def _check_escapes(raw: str) -> None:
    if _BAD_ESCAPE.search(raw):
        raise _wrong(raw, "a % stands before two hexadecimal digits")


def _unescaped(raw: str) -> str:
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), raw)


def _escaped(raw: str, allowed: frozenset[str]) -> str:
    return "".join(char if char in allowed else f"%{ord(char):02X}" for char in raw)


def _kept_or_escaped(raw: str, allowed: frozenset[str]) -> str:
    """The text as it was written where that is well formed, else escaped anew."""
    if all(char in allowed or char in _VALID_ENCODED for char in raw):
        return raw
    return _escaped(_unescaped(raw), allowed)


def _bytes(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _text(raw: str) -> str:
    return raw.encode("latin-1").decode("utf-8", "surrogateescape")


def _wrong(raw: str, reason: str) -> InvalidInputError:
    return InvalidInputError(f"URL: found {_text(raw)!r}, but {reason}")
