"""One setting: where it is read from, what it takes, and how a wrong value is told."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoon.errors import ConfigError


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
        return _allowed(msgspec.json.schema(self.kind))

    def convert(self, value: Any, where: str, *, strict: bool) -> Any:
        """The value in the setting's type. strict: text does not stand for a number.

        Raises ConfigError, which names `where` it was found, what was found and what is allowed.
        """
        try:
            return msgspec.convert(value, self.kind, strict=strict)
        except msgspec.ValidationError as error:
            found = repr(value) if isinstance(value, (str, int, float, bool)) else kind_of(value)
            raise ConfigError(
                f"{where}: found {found}, allowed is {self.allowed}",
                hint=f"see {self.key} in docs/configuration.md",
            ) from error


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
    if schema.get("pattern") == "^/":
        return "an absolute path"
    if schema.get("pattern") == "^(/|$)":
        return "an absolute path or nothing"
    return "text" if "pattern" not in schema else f"text that matches {schema['pattern']}"
