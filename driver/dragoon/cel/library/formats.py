"""Named formats: `format.dns1123Label().validate(text)`.

Source: k8s.io/apiserver 0.37 `cel/library/format.go`.
"""

from collections.abc import Callable
from typing import Any, Final

from dragoon.cel.formats import FORMATS, NamedFormat
from dragoon.cel.functions import Library, function, method
from dragoon.cel.types import FORMAT, STRING, list_of, optional_of
from dragoon.cel.values import ABSENT, OptionalValue


def _named(name: str) -> OptionalValue:
    found = FORMATS.get(name)
    return ABSENT if found is None else OptionalValue(present=True, value=found)


def _validate(format_: NamedFormat, text: str) -> OptionalValue:
    mistakes = format_.mistakes(text)
    return OptionalValue(present=True, value=mistakes) if mistakes else ABSENT


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


FUNCTIONS: Final[Library] = {
    **{
        f"format.{name}": (function(_always(found), result=FORMAT),)
        for name, found in FORMATS.items()
    },
    "format.named": (function(_named, STRING, result=optional_of(FORMAT)),),
    "validate": (method(_validate, FORMAT, STRING, result=optional_of(list_of(STRING))),),
}
