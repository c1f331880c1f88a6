"""Files that somebody named: all of one, if it is text and no larger than anybody would mean.

Standard library and errors only. What a file says is for others.
"""

from pathlib import Path
from typing import BinaryIO, Final, Literal

from dragoon.errors import InvalidInputError

LARGEST: Final = 16 * 2**20
"""Bytes; the API server takes 3 MiB for one object. A device file may never end."""


def text_of(path: Path, *, limit: int = LARGEST) -> str:
    """The text of a file, without a byte order mark.

    Raises InvalidInputError for a file that cannot be read, is larger or is no UTF-8.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error
    with file:
        return text_in(file, str(path), limit=limit)


def text_in(
    stream: BinaryIO,
    name: str,
    *,
    limit: int = LARGEST,
    errors: Literal["strict", "replace"] = "strict",
) -> str:
    """The same of a stream. name: what messages call it. errors: what is done with other bytes."""
    try:
        content = stream.read(limit + 1)
        if len(content) > limit:
            raise InvalidInputError(f"{name}: more than {limit // 2**20} MiB")
        return content.decode("utf-8-sig", errors)
    except OSError as error:
        raise InvalidInputError(f"{name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name}: no text in UTF-8") from error
