"""Where a pod says something about its group: labels, annotations, fields of its spec. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoon.errors import InvalidInputError
from dragoon.gang.records import PodRecord

LONGEST: Final = 253
"""Characters in one text: it names an object."""
_SHOWN: Final = 40
"""Characters of a text in a message: an annotation can have 256 KiB, an Event has 1 KiB."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that a pod says, and where: a field of its spec, labels, annotations.

    More than one place means that any of them will do, and all that are there have to agree.
    default: what holds where none of them is there.
    """

    label: tuple[str, ...] = ()
    annotation: tuple[str, ...] = ()
    field: str = ""
    default: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """The names of labels and annotations, and of the field of spec that it is in."""
        top = self.field.partition(".")[0]
        return (*self.label, *self.annotation, *((top,) if top else ()))

    def read(self, pod: PodRecord) -> str:
        """The text, empty where the pod does not say it. Raises InvalidInputError for two texts."""
        said = dict(self._said(pod))
        if len(set(said.values())) > 1:
            told = ", ".join(f"{text[:_SHOWN]!r} in {where}" for where, text in said.items())
            raise InvalidInputError(f"found {told}; allowed is one")
        return next(iter(said.values()), self.default)

    def _said(self, pod: PodRecord) -> list[tuple[str, str]]:
        found = [(f"label {name}", pod.labels.get(name)) for name in self.label]
        found += [(f"annotation {name}", pod.annotations.get(name)) for name in self.annotation]
        if self.field:
            found.append((f"spec.{self.field}", _at(pod.raw or {}, self.field)))
        return [(where, text) for where, text in found if text]

    def __str__(self) -> str:
        both = [name for name in self.label if name in self.annotation]
        places = [f"label or annotation `{name}`" for name in both]
        places += [f"label `{name}`" for name in self.label if name not in both]
        places += [f"annotation `{name}`" for name in self.annotation if name not in both]
        places += [f"`spec.{self.field}`"] if self.field else []
        return " or ".join(places) + (f", else `{self.default}`" if self.default else "")


def joined(marks: tuple[Mark, ...], pod: PodRecord) -> str:
    """What a pod says at all of these marks, `a/b`; empty where it does not say one of them.

    Raises InvalidInputError.
    """
    texts = [mark.read(pod) for mark in marks]
    long = next((text for text in texts if len(text) > LONGEST), None)
    if long is not None:
        raise InvalidInputError(
            f"found {long[:20]!r}... of {len(long)} characters, allowed are {LONGEST}"
        )
    return "/".join(texts) if texts and all(texts) else ""


def _at(raw: Mapping[str, Any], path: str) -> str | None:
    found: Any = raw.get("spec")
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else None
