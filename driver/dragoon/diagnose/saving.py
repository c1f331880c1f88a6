"""A snapshot in a folder or a dump: what a user can send, and what every command reads again.

`snapshot.json` is the header with the version of the layout; beside it one file for each kind, a
List as the API prints it. A header and lists in one YAML file are read too. Only what the answers
need is kept (`redacting`): no environment, no commands, no images.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from dragoon import __version__
from dragoon.api import limits
from dragoon.diagnose import archive
from dragoon.diagnose.documents import (
    MAX_SNAPSHOT_BYTES,
    Document,
    Unreadable,
    read_files,
    read_text,
)
from dragoon.diagnose.layout import misfit
from dragoon.diagnose.manifests import Manifests, Raw, listed, text
from dragoon.diagnose.redacting import reduced
from dragoon.diagnose.snapshot import PARTS, ClusterSnapshot, identity
from dragoon.errors import InvalidInputError, StateError

GROUP: Final = "diagnose.dragoon.dev"
API_VERSION: Final = f"{GROUP}/v1"
KIND: Final = "Snapshot"
_HEADER_FILE: Final = "snapshot.json"
_OF_NODE: Final = "snapshot/"


def load(path: Path) -> ClusterSnapshot:
    """Reads a saved snapshot: a folder, one file, or the archive that `dragoon dump` writes.

    Raises InvalidInputError for a path that is not there, a document that cannot be read, no
    header or more than one, and for a header of another version.
    """
    found = Manifests.of(_documents(path), namespace="")
    for bad in (*found.unreadable, *found.foreign):
        raise InvalidInputError(f"{bad.origin}: {bad.problem}")
    headers = found.of_kind(KIND)
    if len(headers) != 1:
        raise InvalidInputError(
            f"{path}: found {len(headers)} objects of kind {KIND}, a saved snapshot has one",
            hint="save one with: dragoon simulate --save FOLDER",
        )
    if headers[0].api_version != API_VERSION:
        raise InvalidInputError(
            f"{headers[0].origin}: a snapshot of version {headers[0].api_version}; this version "
            f"of Dragoon ({__version__}) reads {API_VERSION}",
            hint="use the version of Dragoon that saved it, or save it again",
        )
    header = headers[0].raw
    missing = [text(one) for one in listed(header.get("missing"))]
    objects = [item.raw for item in found.items]
    named = [one for one in objects if _is_named_as_stored(one)]
    if len(named) < len(objects):
        number = len(objects) - len(named)
        missing.append(f"left out, with names that no API server takes: objects: {number}")
    kept: list[Raw] = []
    for one in named:
        kind = text(one.get("kind"))
        wrong = misfit(kind, one)
        if wrong:
            called = "/".join(filter(None, identity(one))) or "(without a name)"
            missing.append(f"left out, as no API server stores it: {kind} {called}: {wrong}")
        else:
            kept.append(one)
    return ClusterSnapshot.of(kept, source=str(path)).replacing(
        missing=tuple(missing), version=text(header.get("kubernetes"))
    )


def _is_named_as_stored(raw: Raw) -> bool:
    """Whether an API server can have stored it: answers put names into commands to type."""
    return all(not name or limits.is_subdomain(name) for name in identity(raw))


def save(snapshot: ClusterSnapshot, folder: Path) -> tuple[Path, ...]:
    """Writes a snapshot into a new or empty folder (mode 0700); answers the files.

    Raises InvalidInputError for a folder with something in it, StateError where it cannot be
    written.
    """
    files = contents(snapshot)
    if os.path.lexists(folder) and not folder.is_dir():
        raise InvalidInputError(f"{folder}: found a file, allowed is a new or empty folder")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidInputError(f"{folder}: found files in it, allowed is an empty folder")
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise StateError(f"{folder}: cannot be written: {error.strerror}") from error
    return tuple(folder / name for name in files)


def contents(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """What is saved of a snapshot: JSON data by file name."""
    header = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "dragoon": __version__,
        "source": snapshot.source,
        "kubernetes": snapshot.version,
        "missing": list(snapshot.missing),
    }
    return {_HEADER_FILE: header, **lists(snapshot, PARTS)}


def lists(snapshot: ClusterSnapshot, parts: Iterable[str]) -> dict[str, Any]:
    """Some lists of a snapshot as they are saved. Without the header no command reads them."""
    return {
        f"{PARTS[part].plural}.json": {
            "apiVersion": PARTS[part].api_version,
            "kind": f"{PARTS[part].kind}List",
            "items": [reduced(PARTS[part].kind, raw) for raw in getattr(snapshot, part)],
        }
        for part in parts
    }


def _documents(path: Path) -> Iterator[Document | Unreadable]:
    if not archive.is_archive(path):
        yield from read_files([path], limit=MAX_SNAPSHOT_BYTES)
        return
    files = archive.unpack(path)
    # Of a node that could not ask an API server there is only what the node says of itself.
    places = (archive.CLUSTER, f"{archive.NODE}{_OF_NODE}")
    place = next((one for one in places if f"{one}{_HEADER_FILE}" in files), archive.CLUSTER)
    for name in sorted(files):
        if name.startswith(place):
            yield from read_text(f"{path}:{name}", files[name])
