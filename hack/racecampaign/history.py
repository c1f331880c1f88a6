"""What the API server told of objects, in the order in which it happened.

Watches of two resources lag behind each other by chance; the resourceVersions do not: etcd has one
revision for all, and a deletion has one of its own.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from dragoon.kube.port import Object, Resource

CHANGES: Final = frozenset(("ADDED", "MODIFIED", "DELETED"))


class Event(NamedTuple):
    """What one write made of an object. kind: of CHANGES. revision: etcd's."""

    revision: int
    resource: Resource
    kind: str
    object: Object

    @property
    def is_gone(self) -> bool:
        return self.kind == "DELETED"

    @classmethod
    def of(cls, resource: Resource, kind: str, body: Object) -> "Event":
        return cls(revision_of(body), resource, kind, body)


@dataclass
class History:
    """The events of each namespace, as they came, and how far each resource has been seen."""

    _events: defaultdict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    _seen: dict[Resource, int] = field(default_factory=dict)
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, event: Event) -> None:
        """An event, or a bookmark: of its resource everything before it has come."""
        # A list is in the order of names.
        self._seen[event.resource] = max(event.revision, self._seen.get(event.resource, 0))
        if event.kind in CHANGES:
            namespace = event.object["metadata"].get("namespace") or ""
            self._events[namespace].append(event)
        self._came.set()

    async def seen(self, marks: Mapping[Resource, int]) -> None:
        """Waits until everything up to these revisions has come."""
        while any(self._seen.get(resource, 0) < mark for resource, mark in marks.items()):
            self._came.clear()
            await self._came.wait()

    def take(self, namespace: str, until: int) -> list[Event]:
        """The events of a namespace, and of no namespace, up to a revision, in order.

        They are forgotten, and so are those that came later.
        """
        found = self._events.pop(namespace, []) + self._events.pop("", [])
        return sorted((one for one in found if one.revision <= until), key=lambda one: one.revision)


def revision_of(body: Object) -> int:
    """When an object was written last; of one that was deleted, when that was."""
    return int(body["metadata"]["resourceVersion"])


def write(events: Iterable[Event], file: Path) -> None:
    """One event a line, as JSON. Makes the folder."""
    lines = (
        json.dumps({"revision": one.revision, "kind": one.kind, "object": _without_managers(one)})
        for one in events
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _without_managers(event: Event) -> Object:
    meta = {k: v for k, v in event.object["metadata"].items() if k != "managedFields"}
    return {"kind": event.resource.kind, **event.object, "metadata": meta}
