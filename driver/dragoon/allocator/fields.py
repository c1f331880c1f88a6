"""Reading raw objects: the error for a missing field names the object and the path."""

from collections.abc import Mapping
from typing import Any

from dragoon.allocator.model import Raw
from dragoon.errors import InvalidInputError, UnsupportedError


def required(raw: Raw, path: str, owner: str) -> Any:
    """The value at a dotted path. Raises InvalidInputError naming the owner and the path."""
    value: Any = raw
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            raise InvalidInputError(f"{owner}: {path} is missing")
    return value


def label(metadata: Raw) -> str:
    """Namespace and name, as messages name an object."""
    namespace, name = metadata.get("namespace"), metadata.get("name") or ""
    return f"{namespace}/{name}" if namespace else str(name)


def items(raw: Raw, name: str) -> tuple[Any, ...]:
    """The elements of a list field, none if it is absent."""
    return tuple(raw.get(name) or ())


def refuse(raw: Raw, name: str, owner: str) -> None:
    """Raises UnsupportedError if the field is set to anything."""
    if raw.get(name):
        raise UnsupportedError(f"{owner}: Dragoon does not allocate by {name}")
