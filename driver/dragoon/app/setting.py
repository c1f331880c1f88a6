"""One setting: where it is read from, what it takes, and how a wrong value is told."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from dragoon.errors import ConfigError

_IN_WORDS: Final = "allowed"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and halves that stand for bytes of an argument that are no text."""


def matching(pattern: str, allowed: str) -> Meta:
    """What a text has to match, and the same in words, which is what users are told."""
    return Meta(pattern=pattern, extra={_IN_WORDS: allowed})


Absolute = Annotated[str, matching("^/", "an absolute path")]
AbsoluteOrNone = Annotated[str, matching("^(/|$)", "an absolute path or nothing")]


class Setting(msgspec.Struct, frozen=True):
    """One setting as the user meets it.

    name: in Python. key: in the config file. variable: in the environment. kind: a type that
    msgspec checks. text: what it means.
    """

    name: str
    key: str
    variable: str
    kind: Any
    default: Any
    text: str

    @property
    def flag(self) -> str:
        """Its flag on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def allowed(self) -> str:
        """What it takes, in words."""
        described = msgspec.inspect.type_info(self.kind)
        words = described.extra if isinstance(described, msgspec.inspect.Metadata) else None
        return words[_IN_WORDS] if words else _allowed(msgspec.json.schema(self.kind))

    def convert(self, value: Any, where: str, *, strict: bool) -> Any:
        """The value in the setting's type. strict: text does not stand for a number.

        Raises ConfigError, which names `where` it was found, what was found and what is allowed.
        """
        found = repr(value) if isinstance(value, (str, int, float, bool)) else kind_of(value)
        # Asked first: to a pattern's `$` a line break at the end is none.
        if isinstance(value, str) and _CONTROL.search(value):
            raise self._refused(where, f"{found}, with a character that cannot be shown")
        try:
            return msgspec.convert(value, self.kind, strict=strict)
        except msgspec.ValidationError as error:
            raise self._refused(where, found) from error

    def _refused(self, where: str, found: str) -> ConfigError:
        return ConfigError(
            f"{where}: found {found}, allowed is {self.allowed}",
            hint=f"see {self.key} in docs/configuration.md",
        )


def kind_of(value: Any) -> str:
    """What a value from YAML is, in words."""
    names = {dict: "a mapping", list: "a list", str: "text", type(None): "nothing"}
    return names.get(type(value), f"a {type(value).__name__}")


def _allowed(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if schema["type"] == "boolean":
        return "true or false"
    if schema["type"] in {"number", "integer"}:
        kind = "a number" if schema["type"] == "number" else "a whole number"
        return f"{kind} from {schema['minimum']:g} to {schema['maximum']:g}"
    return "text"
