"""What msgspec and PyYAML raise over bytes that somebody else wrote."""

from typing import Final

import msgspec
import yaml

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Of a type that was not expected, no text, nested deeper than Python goes."""

NOT_YAML: Final = (yaml.YAMLError, ValueError, RecursionError)
"""A date that no calendar has, or a number that is none, is a ValueError; the rest as above."""
