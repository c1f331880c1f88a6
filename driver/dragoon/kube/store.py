"""The objects of an in-process API server, with the history its watches read. Mutable holder.

Single event loop: no method awaits between reading and writing. Stored objects are never changed
in place; whoever hands one out copies it first.
"""

import asyncio
from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from dragoon.errors import ApiGoneError
from dragoon.kube import paths
from dragoon.kube.port import Object, Resource

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write: old is None for a creation, new is None for a deletion."""

    revision: int
    old: Object | None
    new: Object | None


class Store:
    """Objects by resource and key. revision is the resourceVersion of the last write."""

    def __init__(self, history: int) -> None:
        self.revision = 1
        self.bookmarks = 0
        self._objects: dict[Resource, dict[Key, Object]] = {}
        self._history: dict[Resource, list[Change]] = {}
        self._limit = history
        self._compacted = self.revision
        self._forgotten: dict[Resource, int] = {}
        self._pulse = asyncio.Event()

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self._objects.get(resource, {}).get(key)

    def items(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        """All objects in the order of their keys."""
        found = self._objects.get(resource, {})
        return [found[key] for key in sorted(found) if namespace is None or key[0] == namespace]

    def put(self, resource: Resource, key: Key, new: Object) -> Object:
        """Stores an object under the next revision; returns what is stored."""
        old = self.get(resource, key)
        stored = self._stamped(new)
        self._objects.setdefault(resource, {})[key] = stored
        self._record(resource, old, stored)
        return stored

    def remove(self, resource: Resource, key: Key) -> None:
        """Removes an object; its watchers see it with the revision of the removal."""
        old = self._objects[resource].pop(key)
        self._record(resource, self._stamped(old), None)

    def since(self, resource: Resource, revision: int) -> list[Change]:
        """The changes of a resource after a revision.

        Raises ApiGoneError when some are forgotten, and for a revision of the future: a client of
        a real server gets that too, after a long silence.
        """
        oldest = self._forgotten.get(resource, self._compacted)
        if revision < oldest:
            raise ApiGoneError(f"too old resource version: {revision} ({oldest})", status=410)
        if revision > self.revision:
            raise ApiGoneError(f"version {revision} is to come, now is {self.revision}", status=410)
        history = self._history.get(resource, [])
        return history[bisect_right(history, revision, key=lambda change: change.revision) :]

    def compact(self) -> None:
        """Forgets the history: every watch that has not seen it all gets 410."""
        self._history.clear()
        self._forgotten.clear()
        self._compacted = self.revision

    def bookmark(self) -> None:
        """Makes every watch send a bookmark now."""
        self.bookmarks += 1
        self.wake()

    def wake(self) -> None:
        """Lets every watch look again."""
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    async def pulse(self) -> None:
        """Waits until something changed or somebody called wake()."""
        await self._pulse.wait()

    def _stamped(self, found: Object) -> Object:
        self.revision += 1
        return {**found, "metadata": {**found["metadata"], "resourceVersion": str(self.revision)}}

    def _record(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        history = self._history.setdefault(resource, [])
        history.append(Change(self.revision, old, new))
        if len(history) > 2 * self._limit:  # Seldom and many: one by one would cost each write.
            cut = len(history) - self._limit
            self._forgotten[resource] = history[cut - 1].revision
            del history[:cut]
        self.wake()


def key_of(resource: Resource, name: str, namespace: str | None) -> Key:
    """Where an object is. Raises InvalidInputError for what cannot be a name."""
    paths.segment(name, "name")
    return (namespace or "" if resource.namespaced else "", name)


def copied(found: T) -> T:
    """A copy by way of JSON, so that only what can travel to a server is accepted."""
    result: T = msgspec.json.decode(msgspec.json.encode(found))
    return result
