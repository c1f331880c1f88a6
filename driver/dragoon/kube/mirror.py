"""What a local copy of a collection holds: lists, watch events and own writes, put in order.

Versions of one server are numbers in order (KEP-5504). Handlers see every key's changes in a legal
order: added, updated any number of times, deleted.
"""

import logging
from collections.abc import Callable, ItemsView
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from dragoon.kube.port import Listing, Object, Resource, WatchEvent

T = TypeVar("T")
log = logging.getLogger(__name__)


class Key(NamedTuple):
    """Of an object: namespace is empty where the resource is cluster-scoped."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What happened to one object: added (old is None), deleted (new is None) or updated."""

    key: Key
    old: T | None
    new: T | None


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    uid: str
    revision: int
    value: T


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """An object as it was read; entry is None where it could not be."""

    key: Key
    uid: str
    revision: int
    entry: _Entry[T] | None


class Mirror(Generic[T]):
    """The copy of one resource, without where it comes from. Belongs to one event loop.

    decode turns a raw object into what is kept (default: the object itself); an object that it
    fails on is left out of the copy and logged.
    """

    def __init__(self, resource: Resource, decode: Callable[[Object], T] | None = None) -> None:
        self._resource = resource
        self._decode: Callable[[Object], Any] = decode or _unchanged
        self._entries: dict[Key, _Entry[T]] = {}
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._revision = 0

    def get(self, name: str, namespace: str = "") -> T | None:
        """The local copy of one object, None where there is none."""
        entry = self._entries.get(Key(namespace, name))
        return None if entry is None else entry.value

    def items(self) -> ItemsView[Key, T]:
        """The local copy of all objects, as it is now."""
        return {key: entry.value for key, entry in self._entries.items()}.items()

    def values(self) -> tuple[T, ...]:
        """The local copy of all objects, as it is now, in no order."""
        return tuple(entry.value for entry in self._entries.values())

    def subscribe(self, handler: Callable[[Change[T]], None]) -> None:
        """Calls handler on the loop for every change from now on, and for what is here already.

        A handler must not block. One that raises is logged and called again for the next change.
        """
        for key, entry in self._entries.items():
            self._call(handler, Change(key, None, entry.value))
        self._handlers.append(handler)

    def observe(self, written: Object) -> None:
        """Takes the answer to an own write into the copy before the watch brings it.

        Without it the next decision could be made from a copy older than the last one's effect.
        It must match the selectors of the copy. Older than what the watch has shown: ignored.
        """
        if int(written["metadata"]["resourceVersion"]) > self._revision:
            self._take(self._read(written))

    def _replace(self, found: list[Read[T]], revision: int) -> None:
        """Takes over a list of all objects, and its version."""
        if revision < self._revision:
            # Only a server restored from a backup goes back: no entry is newer than its word.
            self._entries = {
                key: _Entry(entry.uid, -1, entry.value) for key, entry in self._entries.items()
            }
        keys = {read.key for read in found}
        for key, entry in list(self._entries.items()):
            # What observe() brought after the list was made is newer than the list.
            if key not in keys and entry.revision <= revision:
                self._forget(key)
        for read in found:
            self._take(read)
        self._revision = revision

    def _see(self, event: WatchEvent) -> None:
        """Takes over what a watch brought, in the order in which it came."""
        revision = int(event.object["metadata"]["resourceVersion"])
        if revision <= self._revision:
            return  # A list that came in between has it, or the end of what it is about.
        if event.kind == "DELETED":
            key = _key(event.object)
            entry = self._entries.get(key)
            if entry is not None and entry.revision <= revision:
                self._forget(key)
        elif event.kind != "BOOKMARK" and self._is_news(_key(event.object), revision):
            self._take(self._read(event.object))
        self._revision = revision

    def _is_news(self, key: Key, revision: int) -> bool:
        """Not so where an own write was observed before its watch event came."""
        known = self._entries.get(key)
        return known is None or known.revision < revision

    def _read_all(self, listing: Listing) -> list[Read[T]]:
        """May run in another thread: changes nothing."""
        return [self._read(raw) for raw in listing.items]

    def _read(self, raw: Object) -> Read[T]:
        key, meta = _key(raw), raw["metadata"]
        uid, revision = meta["uid"], int(meta["resourceVersion"])
        try:
            return Read(key, uid, revision, _Entry(uid, revision, self._decode(raw)))
        except Exception:  # one bad object must not cost the others
            log.exception("%s %s cannot be read, it is left out", self._resource.kind, key)
            return Read(key, uid, revision, None)

    def _take(self, read: Read[T]) -> None:
        if not self._is_news(read.key, read.revision):
            return
        old = self._entries.get(read.key)
        if old is not None and (old.uid != read.uid or read.entry is None):
            self._forget(read.key)
            old = None
        if read.entry is not None:
            self._entries[read.key] = read.entry
            self._tell(Change(read.key, None if old is None else old.value, read.entry.value))

    def _forget(self, key: Key) -> None:
        old = self._entries.pop(key, None)
        if old is not None:
            self._tell(Change(key, old.value, None))

    def _tell(self, change: Change[T]) -> None:
        for handler in tuple(self._handlers):
            self._call(handler, change)

    def _call(self, handler: Callable[[Change[T]], None], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:  # a handler's fault must not stop the others, nor the copy
            log.exception("a handler of %s failed for %s", self._resource.plural, change.key)


def _unchanged(raw: Object) -> Object:
    return raw


def _key(raw: Object) -> Key:
    meta = raw["metadata"]
    return Key(meta.get("namespace", ""), meta["name"])
