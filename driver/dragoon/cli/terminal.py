"""Standard output and error without what a terminal would obey, whoever wrote the text.

Names, messages and expressions of other people stand in almost everything that is printed, so the
streams are guarded and not each line. Colours pass: those that the commands use.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, Final, TextIO, cast

from dragoon.api.visible import OBEYED, REPLACEMENT

_OURS: Final = re.compile(r"(\n|\t|\x1b\[(?:0|1|2|3[0-7]|9[0-7])(?:;(?:0|1|2|3[0-7]|9[0-7]))*m)")
"""Line breaks, tabs, and the colours of click and rich: SGR codes of ECMA-48 that hide nothing."""


class _Guarded:
    """A text stream that replaces what is obeyed; everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        parts = _OURS.split(text)
        parts[::2] = [OBEYED.sub(REPLACEMENT, part) for part in parts[::2]]
        self._stream.write("".join(parts))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarded() -> Iterator[None]:
    """Guards both streams of this process inside the block."""
    out, err = (cast("TextIO", _Guarded(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield
