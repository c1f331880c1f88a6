"""The named formats of Kubernetes' `format` library, and what is wrong with a text.

Source: k8s.io/apiserver 0.37 `cel/library/format.go`, k8s.io/apimachinery `api/validate/content`,
k8s.io/kube-openapi `strfmt`. How many mistakes there are is Kubernetes' count; the wording is ours.
"""

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dragoon.cel.urls import check_request_uri
from dragoon.errors import InvalidInputError

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = re.compile(_LABEL, re.ASCII)
_DNS_1035: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_NAME: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME: Final = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)
_LABEL_LENGTH: Final = 63
_SUBDOMAIN_LENGTH: Final = 253
_LEAP_YEAR: Final = 2000

Mistakes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format. mistakes: what is wrong with a text; pattern_size: for CEL's cost model."""

    name: str
    mistakes: Callable[[str], Mistakes]
    pattern_size: int

    def __str__(self) -> str:
        return f"format.{self.name}()"


def _sized(text: str, most: int) -> Mistakes:
    """Bytes count, not characters."""
    return () if len(text.encode()) <= most else (f"must be no more than {most} bytes",)


def _label(pattern: re.Pattern[str], text: str) -> Mistakes:
    wrong = () if pattern.fullmatch(text) else (f"must match {pattern.pattern}",)
    return (*_sized(text, _LABEL_LENGTH), *wrong)


def _subdomain(text: str) -> Mistakes:
    wrong = () if _SUBDOMAIN.fullmatch(text) else ("must be labels with dots between them",)
    return (*_sized(text, _SUBDOMAIN_LENGTH), *wrong)


def _as_prefix(mistakes: Callable[[str], Mistakes]) -> Callable[[str], Mistakes]:
    """The format of a text to which more is added: a dash may end it."""

    def of_prefix(text: str) -> Mistakes:
        # Kubernetes replaces the last two characters, not only the dash.
        return mistakes(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return of_prefix


def _qualified_name(text: str) -> Mistakes:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return ("must be a name, or a prefix, a slash and a name",)
    found: list[str] = []
    if slash:
        found += _subdomain(prefix) if prefix else ("the prefix is empty",)
    found += _sized(name, _LABEL_LENGTH) if name else ("the name is empty",)
    if not _NAME.fullmatch(name):
        found.append(f"the name must match {_NAME.pattern}")
    return tuple(found)


def _label_value(text: str) -> Mistakes:
    wrong = () if not text or _NAME.fullmatch(text) else (f"must match {_NAME.pattern}",)
    return (*_sized(text, _LABEL_LENGTH), *wrong)


def _uri(text: str) -> Mistakes:
    try:
        check_request_uri(text)
    except InvalidInputError as error:
        return (error.message,)
    return ()


def _unless(accepts: Callable[[str], bool], mistake: str) -> Callable[[str], Mistakes]:
    return lambda text: () if accepts(text) else (mistake,)


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    year = int(text[:4])
    try:
        # Go knows a year 0, which is a leap year; Python does not.
        dt.date(year or _LEAP_YEAR, int(text[5:7]), int(text[8:]))
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    day, found, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.partition("t")[0])
    if not found or match is None or not _is_date(day):
        return False
    hour, minute, second = match.groups()
    return hour <= "23" and minute <= "59" and second <= "59"


def _dns_label(text: str) -> Mistakes:
    return _label(_DNS_LABEL, text)


def _dns_1035_label(text: str) -> Mistakes:
    return _label(_DNS_1035, text)


FORMATS: Final = {
    one.name: one
    for one in (
        NamedFormat("dns1123Label", _dns_label, 30),
        NamedFormat("dns1123Subdomain", _subdomain, 60),
        NamedFormat("dns1035Label", _dns_1035_label, 30),
        NamedFormat("qualifiedName", _qualified_name, 60),
        NamedFormat("dns1123LabelPrefix", _as_prefix(_dns_label), 30),
        NamedFormat("dns1123SubdomainPrefix", _as_prefix(_subdomain), 60),
        NamedFormat("dns1035LabelPrefix", _as_prefix(_dns_1035_label), 30),
        NamedFormat("labelValue", _label_value, 40),
        NamedFormat("uri", _uri, 1103),
        NamedFormat("uuid", _unless(lambda text: bool(_UUID.fullmatch(text)), "is no UUID"), 70),
        NamedFormat(
            "byte", _unless(lambda text: bool(_BASE64.fullmatch(text)), "is not base64"), 84
        ),
        NamedFormat("date", _unless(_is_date, "is no date"), 71),
        NamedFormat("datetime", _unless(_is_datetime, "is no date and time"), 71),
    )
}
"""Every format by its name."""
