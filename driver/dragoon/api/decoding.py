"""What msgspec raises over bytes that somebody else wrote."""

from typing import Final

import msgspec

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Of a type that was not expected, no text, nested deeper than Python goes."""
