"""What a cluster looked like: raw objects, the same whether they were live, saved or in files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from dragoon.diagnose.manifests import Item, Raw, mapping, text
from dragoon.kube.port import (
    CLAIMS,
    CLASSES,
    GANGS,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Resource,
)

PARTS: Final[Mapping[str, Resource]] = {
    "classes": CLASSES,
    "slices": SLICES,
    "claims": CLAIMS,
    "templates": TEMPLATES,
    "pods": PODS,
    "nodes": NODES,
    "taint_rules": TAINT_RULES,
    "gangs": GANGS,
}
"""The fields of a snapshot that hold objects, and what each holds."""

_FIELDS: Final = {resource.kind: field for field, resource in PARTS.items()}


class NotReadError(Exception):
    """Something needs a part that was not gathered: whoever asked for it tells why, and goes on."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Raw objects of one moment. Nobody changes them: a changed copy is a new snapshot.

    missing: what could not be read, and why; answers are made without it. version: what the API
    server calls itself, empty where that is not known. members: names of the pods of a Gang, by its
    namespace and name, where that is known better than by their label.
    """

    classes: tuple[Raw, ...] = ()
    slices: tuple[Raw, ...] = ()
    claims: tuple[Raw, ...] = ()
    templates: tuple[Raw, ...] = ()
    pods: tuple[Raw, ...] = ()
    nodes: tuple[Raw, ...] = ()
    taint_rules: tuple[Raw, ...] = ()
    gangs: tuple[Raw, ...] = ()
    source: str = ""
    missing: tuple[str, ...] = ()
    version: str = ""
    members: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[Raw], *, source: str = "") -> Self:
        """A snapshot of these objects; other kinds are left out."""
        sorted_: dict[str, list[Raw]] = {part: [] for part in PARTS}
        for raw in objects:
            part = _FIELDS.get(text(raw.get("kind")))
            if part is not None:
                sorted_[part].append(raw)
        parts: dict[str, Any] = {part: tuple(found) for part, found in sorted_.items()}
        return cls(**parts, source=source)

    def objects(self, kind: str) -> tuple[Raw, ...]:
        """All objects of a kind, none for a kind that a snapshot does not hold."""
        part = _FIELDS.get(kind)
        return () if part is None else tuple(getattr(self, part))

    def named(self, kind: str) -> Iterator[tuple[str, str, Raw]]:
        """(namespace, name, object) of every object of a kind."""
        for raw in self.objects(kind):
            yield *identity(raw), raw

    def find(self, kind: str, namespace: str, name: str) -> Raw | None:
        """One object, None if it is not there."""
        return next((raw for raw in self.objects(kind) if identity(raw) == (namespace, name)), None)

    def with_items(self, items: Sequence[Item]) -> Self:
        """A copy as it would be with these objects applied: same names are replaced."""
        changes: dict[str, Any] = {}
        for kind, part in _FIELDS.items():
            added = [item for item in items if item.kind == kind]
            if added:
                names = {(item.namespace, item.name) for item in added}
                kept = [raw for raw in getattr(self, part) if identity(raw) not in names]
                changes[part] = (*kept, *map(with_namespace, added))
        return replace(self, **changes)

    def replacing(self, **changes: Any) -> Self:
        """A copy with other parts."""
        return replace(self, **changes)


def identity(raw: Raw) -> tuple[str, str]:
    """(namespace, name) of an object."""
    metadata = mapping(raw.get("metadata"))
    return text(metadata.get("namespace")), text(metadata.get("name"))


def with_namespace(item: Item) -> Raw:
    """The object as the API server would store it: in the namespace that it is applied to."""
    if not item.namespace:
        return item.raw
    return {
        **item.raw,
        "metadata": {**mapping(item.raw.get("metadata")), "namespace": item.namespace},
    }
