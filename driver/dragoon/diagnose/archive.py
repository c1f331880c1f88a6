"""Dumps: one gzipped tar file with a table of contents, written and read in memory.

`dump.json` says the layout and what each task found; below `cluster/` lies a saved cluster, below
`node/` what a node told. Names in an archive from somebody else are keys here, never paths: nothing
is unpacked to a disk.
"""

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dragoon import __version__
from dragoon.diagnose.codes import API_VERSION
from dragoon.errors import InvalidInputError

LAYOUT: Final = 1
"""Of the archive. A reader takes what is not newer than itself."""
CONTENTS: Final = "dump.json"
CLUSTER: Final = "cluster/"
NODE: Final = "node/"
KIND: Final = "Dump"
MAX_BYTES: Final = 1024 * 2**20
"""Of the archive, unpacked: a small file must not fill the memory."""

_MAGIC: Final = b"\x1f\x8b"


def is_archive(path: Path) -> bool:
    """Whether the file is gzipped. Raises InvalidInputError where it cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except IsADirectoryError:
        return False
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error


def pack(files: Mapping[str, Any], contents: Mapping[str, Any], *, created: int) -> bytes:
    """The archive. files: JSON data by name; contents: what `dump.json` says besides its version.

    created: seconds since 1970, the time of every file in it.
    """
    header = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "layout": LAYOUT,
        "dragoon": __version__,
        **contents,
    }
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as tar:
        for name, data in {CONTENTS: header, **files}.items():
            text = data if isinstance(data, str) else json.dumps(data, indent=1) + "\n"
            body = text.encode()
            entry = tarfile.TarInfo(f"dragoon-dump/{name}")
            entry.size, entry.mtime, entry.mode = len(body), created, 0o600
            tar.addfile(entry, io.BytesIO(body))
    return target.getvalue()


def unpack(path: Path, *, limit: int = MAX_BYTES) -> dict[str, str]:
    """The texts of an archive by name. limit: bytes of it, unpacked.

    Raises InvalidInputError for a file that is no dump, too large, or of a newer layout.
    """
    files = _texts(path, limit)
    try:
        header = json.loads(files[CONTENTS])
        kind, layout = header["kind"], header["layout"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{path}: found no {CONTENTS} of a dump in it", hint="make one with: dragoon dump"
        ) from error
    if kind != KIND or not isinstance(layout, int) or layout > LAYOUT:
        raise InvalidInputError(
            f"{path}: a {kind} of layout {layout}, written by Dragoon {header.get('dragoon')}; this "
            f"version ({__version__}) reads layouts up to {LAYOUT}",
            hint="use the version of Dragoon that wrote it, or a newer one",
        )
    return files


class _Limited(io.BufferedIOBase):
    """Reads so many bytes and no more: headers of an archive can be as large as its files."""

    def __init__(self, stream: gzip.GzipFile, path: Path, limit: int) -> None:
        self._stream = stream
        self._path = path
        self._limit = limit
        self._left = limit

    def read(self, size: int | None = -1, /) -> bytes:
        found = self._stream.read(size)
        self._left -= len(found)
        if self._left < 0:
            raise InvalidInputError(f"{self._path}: more than {self._limit} bytes in it")
        return found


def _texts(path: Path, limit: int) -> dict[str, str]:
    files: dict[str, str] = {}
    try:
        with (
            gzip.open(path) as unpacked,
            tarfile.open(fileobj=_Limited(unpacked, path, limit), mode="r|") as tar,
        ):
            for entry in tar:
                if entry.isreg():
                    body = tar.extractfile(entry)
                    name = entry.name.partition("/")[2]
                    files[name] = b"".join(body or ()).decode("utf-8")
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: no dump of Dragoon: {error}") from error
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror or error}") from error
    return files
