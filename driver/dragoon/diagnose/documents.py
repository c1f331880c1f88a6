"""Files to YAML documents: one that cannot be read is named, and the others are kept.

Read as Kubernetes reads YAML: a date is text, and a key that is there twice is a mistake.
"""

import contextlib
import json
import re
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from dragoon.api.decoding import NOT_YAML
from dragoon.errors import InvalidInputError
from dragoon.reading import LARGEST, text_of

MAX_SNAPSHOT_BYTES: Final = 512 * 2**20
"""Of a file of a saved cluster: 1,000 nodes with 128 devices each are some 200 MiB."""
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_BETWEEN: Final = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)
_CONTENT: Final = re.compile(r"^(?!---\s*$|\.\.\.\s*$|\s*#|%|\s*$)", re.MULTILINE)
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"

_LONGEST: Final = 1000
"""Characters of a text that a message quotes."""

_short = reprlib.Repr()
_short.maxdict = _short.maxlist = _short.maxlevel = 3
_short.maxstring = _short.maxother = 120


def shown(value: Any) -> str:
    """A value for a message: of text the beginning, of everything else a short form."""
    if not isinstance(value, str):
        return _short.repr(value)
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something stands: the file, the number of the document in it, its first line."""

    file: str
    document: int = 1
    line: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line} (document {self.document})"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One YAML document."""

    origin: Origin
    content: Any


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that is no YAML, and why."""

    origin: Origin
    problem: str


def read_files(paths: Iterable[Path], *, limit: int = LARGEST) -> Iterator[Document | Unreadable]:
    """All documents of files, and of the YAML and JSON files in folders (not below them).

    limit: bytes of one file.

    Raises InvalidInputError for a file that is not there, too large, or no text.
    """
    for path in paths:
        for file in _files(path):
            yield from read_text(str(file), text_of(file, limit=limit))


def read_text(file: str, text: str) -> Iterator[Document | Unreadable]:
    """The documents of one text; empty ones are left out and not counted."""
    if file.endswith(".json"):
        # JSON is YAML, but a hundred times faster to read; a mistake is told with its line by YAML.
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(text)
            yield Document(Origin(file), content)
            return
    line, number = 1, 0
    for part in _BETWEEN.split(text):
        first = _CONTENT.search(part)
        if first is not None:
            number += 1
            yield _document(Origin(file, number, line + part.count("\n", 0, first.start())), part)
        line += part.count("\n")


def _document(origin: Origin, part: str) -> Document | Unreadable:
    try:
        return Document(origin, yaml.load(part, _Loader))  # noqa: S506 - made from SafeLoader
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1} of it: "
        return Unreadable(origin, f"{where}{error.problem or error.context}")
    except NOT_YAML as error:
        return Unreadable(origin, str(error).partition("\n")[0] or type(error).__name__)


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        found = sorted(one for one in path.iterdir() if one.suffix in _SUFFIXES and one.is_file())
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error
    if not found:
        raise InvalidInputError(f"{path}: found no file, looked for {', '.join(_SUFFIXES)}")
    return found


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader without dates, and strict about keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} is there twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
