"""Files that somebody named: what cannot be read whole is told by name, and nothing runs on."""

import errno
import io
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from dragoon.errors import InvalidInputError
from dragoon.reading import text_in, text_of


class Failing(io.RawIOBase):
    """A stream of a disk that cannot be read."""

    def read(self, size: int = -1, /) -> bytes | None:
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(("content", "text"), [(b"", ""), ("\ufeffä\n".encode(), "ä\n")])
def test_all_of_a_file_is_read_without_its_byte_order_mark(
    tmp_path: Path, content: bytes, text: str
) -> None:
    file = tmp_path / "a"
    file.write_bytes(content)
    assert text_of(file) == text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "No such file or directory"),
        ("", "Is a directory"),
        ("x" * 300, "File name too long"),
        ("binary", "no text in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_by_name(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    file = tmp_path / name
    with pytest.raises(InvalidInputError) as caught:
        text_of(file)
    assert caught.value.message == f"{file}: {message}"


def test_a_file_that_never_ends_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="/dev/zero: more than 16 MiB"):
        text_of(Path("/dev/zero"))


def test_a_stream_is_read_by_the_same_rules() -> None:
    assert text_in(io.BytesIO(b"a\xff"), "stdin", errors="replace") == "a\ufffd"
    with pytest.raises(InvalidInputError, match="stdin: no text in UTF-8"):
        text_in(io.BytesIO(b"a\xff"), "stdin")
    with pytest.raises(InvalidInputError, match="stdin: more than 1 MiB"):
        text_in(io.BytesIO(b"a" * (2**20 + 1)), "stdin", limit=2**20)
    with pytest.raises(InvalidInputError, match="stdin: Input/output error"):
        text_in(cast("BinaryIO", Failing()), "stdin")
