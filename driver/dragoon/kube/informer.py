"""A local copy of a collection that follows a watch.

List, then watch from the list's version; after a break watch again from the last version seen,
after 410 (or a row of breaks) list again. Handlers see every key's changes in a legal order:
added, updated any number of times, deleted. There is no periodic resync.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, ItemsView, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from dragoon.errors import ApiUnavailableError, DragoonError
from dragoon.kube.backoff import Backoff
from dragoon.kube.port import Api, Listing, Object, Resource, WatchEvent

T = TypeVar("T")
log = logging.getLogger(__name__)

# After so many breaks in a row the copy is refreshed by a list: a server might fail to continue
# from one version for ever without saying 410.
_BREAKS_BEFORE_LIST = 5


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
class InformerState:
    """For telemetry.

    last_error: what broke list or watch, None once either brought something again.
    last_event: when the last list, event or bookmark came, in seconds of the informer's clock.
    events, lists and breaks count since the start.
    """

    synced: bool
    last_error: DragoonError | None
    last_event: float | None
    resource_version: str
    events: int
    lists: int
    breaks: int


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    uid: str
    revision: int
    value: T


@dataclass(frozen=True, slots=True)
class _Read(Generic[T]):
    """An object as it was read; entry is None where it could not be."""

    key: Key
    uid: str
    revision: int
    entry: _Entry[T] | None


class Informer(Generic[T]):
    """Follows one resource. All methods belong to the event loop that runs run().

    decode turns a raw object into what is kept (default: the object itself); an object that it
    fails on is left out of the copy and logged. page: lists come in parts of this size, and decode
    runs in another thread for each, one at a time: for collections that are large as raw objects.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        *,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
        decode: Callable[[Object], T] | None = None,
        page: int = 0,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._resource = resource
        self._scope: dict[str, Any] = {"namespace": namespace, "fields": fields, "labels": labels}
        self._decode: Callable[[Object], Any] = decode or _unchanged
        self._page = page
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._clock = clock
        self._entries: dict[Key, _Entry[T]] = {}
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._synced = asyncio.Event()
        self._revision = 0
        self._last_error: DragoonError | None = None
        self._last_event: float | None = None
        self._events = self._lists = self._breaks = 0

    @property
    def state(self) -> InformerState:
        return InformerState(
            synced=self._synced.is_set(),
            last_error=self._last_error,
            last_event=self._last_event,
            resource_version=str(self._revision) if self._revision else "",
            events=self._events,
            lists=self._lists,
            breaks=self._breaks,
        )

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

    async def synced(self) -> None:
        """Waits until the first list is in the copy. Says nothing about how old the copy is."""
        await self._synced.wait()

    def observe(self, written: Object) -> None:
        """Takes the answer to an own write into the copy before the watch brings it.

        Without it the next decision could be made from a copy older than the last one's effect.
        It must match the informer's selectors. Older than what the watch has shown: ignored.
        Versions of one server are numbers in order (KEP-5504).
        """
        if int(written["metadata"]["resourceVersion"]) > self._revision:
            self._take(self._read(written))

    async def refresh(self) -> None:
        """Lists past every cache, beside the watch; the copy is then at least as new as that list.

        Raises what the list raises.
        """
        found, revision = await self._fetch()
        # A watch that has come further has shown all that the list has, and what went since.
        if revision > self._revision:
            self._replace(found, revision)

    async def run(self) -> None:
        """Keeps the copy current until cancelled; errors of the API are waited out."""
        listed = refused = False
        while True:
            try:
                if not listed:
                    await self._list()
                    listed = True
                    if not refused:  # A watch refused again and again must not be tried faster.
                        self._backoff.reset()
                await self._watch()
            except DragoonError as error:
                # Only a broken connection leaves the last version good to continue from.
                broken = isinstance(error, ApiUnavailableError)
                refused = listed and not broken
                listed = listed and broken and self._backoff.failures < _BREAKS_BEFORE_LIST
                await self._pause(error)

    async def _list(self) -> None:
        self._replace(*await self._fetch())
        self._synced.set()

    async def _fetch(self) -> tuple[list[_Read[T]], int]:
        """All objects of one moment, and its version."""
        found: list[_Read[T]] = []
        if self._page:
            pages = self._api.pages(self._resource, size=self._page, **self._scope)
            async with contextlib.aclosing(pages):
                async for listing in pages:
                    found += await asyncio.to_thread(self._read_all, listing)
        else:
            listing = await self._api.list(self._resource, **self._scope)
            found = self._read_all(listing)
        self._lists += 1
        self._heard()
        return found, int(listing.resource_version)

    async def _watch(self) -> None:
        stream = self._api.watch(
            self._resource, resource_version=str(self._revision), **self._scope
        )
        silent = True
        async with contextlib.aclosing(stream):
            async for event in stream:
                silent = False
                self._events += 1
                self._backoff.reset()
                self._heard()
                self._see(event)
        if silent:
            # A server that ends every watch at once must not be asked in a tight loop.
            raise ApiUnavailableError(f"watch of {self._resource.plural} ended without an event")

    def _heard(self) -> None:
        self._last_error = None
        self._last_event = self._clock()

    async def _pause(self, error: DragoonError) -> None:
        self._breaks += 1
        self._last_error = error
        delay = self._backoff.next()
        log.log(
            logging.INFO if error.retryable else logging.WARNING,
            "%s: list and watch broke, next try in %.1f s: %s",
            self._resource.plural,
            delay,
            error,
        )
        await self._sleep(delay)

    def _replace(self, found: list[_Read[T]], revision: int) -> None:
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
        revision = int(event.object["metadata"]["resourceVersion"])
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

    def _read_all(self, listing: Listing) -> list[_Read[T]]:
        return [self._read(raw) for raw in listing.items]

    def _read(self, raw: Object) -> _Read[T]:
        key, meta = _key(raw), raw["metadata"]
        uid, revision = meta["uid"], int(meta["resourceVersion"])
        try:
            return _Read(key, uid, revision, _Entry(uid, revision, self._decode(raw)))
        except Exception:  # one bad object must not cost the others
            log.exception("%s %s cannot be read, it is left out", self._resource.kind, key)
            return _Read(key, uid, revision, None)

    def _take(self, read: _Read[T]) -> None:
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
