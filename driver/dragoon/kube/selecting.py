"""Field and label selectors, as an API server applies them to raw objects.

Source: apimachinery's `fields` (equality only is used here) and `labels` packages.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoon.errors import ApiInvalidError
from dragoon.kube.port import Object

Matcher = Callable[[Object], bool]

_LABEL_TERM = re.compile(r"[^,(]+(?:\([^)]*\))?")
_SET_TERM = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUALITY_TERM = re.compile(r"^(?P<key>[^=!\s]+)\s*(?P<operator>==?|!=)\s*(?P<value>[^=!\s]*)$")
_KEY_TERM = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^=!\s()]+)$")
_FIELD_TERM = re.compile(r"((?:\\.|[^\\,])+)")
_ESCAPED = re.compile(r"\\(.)")


def matcher(
    fields: Mapping[str, str] | None, labels: str | None, allowed: Iterable[str]
) -> Matcher:
    """Answers whether an object matches both selectors.

    `allowed` are the field paths this resource can be selected by. Raises ApiInvalidError (400)
    for another path or for a selector that cannot be read.
    """
    for path in fields or {}:
        if path not in allowed:
            raise ApiInvalidError(
                f"fieldSelector: field label not supported: {path}; allowed: {', '.join(allowed)}",
                status=400,
            )
    wanted = tuple((tuple(path.split(".")), value) for path, value in (fields or {}).items())
    terms = tuple(_label_term(term) for term in _LABEL_TERM.findall(labels or "") if term.strip())

    def matches(found: Object) -> bool:
        have = found.get("metadata", {}).get("labels") or {}
        return all(_field(found, path) == value for path, value in wanted) and all(
            term(have) for term in terms
        )

    return matches


def parsed_fields(selector: str) -> dict[str, str]:
    r"""Reads a `fieldSelector` query: `a=b,c==d`, with `\`, `,` and `=` escaped in values."""
    found = {}
    for term in _FIELD_TERM.findall(selector):
        path, equals, value = term.partition("=")
        if not equals or path.endswith("!"):
            raise ApiInvalidError(f"fieldSelector: found {term!r}, allowed is a=b", status=400)
        found[path] = _ESCAPED.sub(r"\1", value.removeprefix("="))
    return found


def _field(found: Object, path: tuple[str, ...]) -> str:
    value: Any = found
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _label_term(term: str) -> Callable[[Mapping[str, str]], bool]:
    term = term.strip()
    if found := _SET_TERM.match(term):
        key = found["key"]
        values = {value.strip() for value in found["values"].split(",")}
        if found["operator"] == "in":
            return lambda have: key in have and have[key] in values
        return lambda have: have.get(key) not in values
    if found := _EQUALITY_TERM.match(term):
        key, value = found["key"], found["value"]
        if found["operator"] == "!=":
            return lambda have: have.get(key) != value
        return lambda have: have.get(key) == value
    if found := _KEY_TERM.match(term):
        key = found["key"]
        return (lambda have: key not in have) if found["absent"] else (lambda have: key in have)
    raise ApiInvalidError(f"labelSelector: cannot read {term!r}", status=400)
