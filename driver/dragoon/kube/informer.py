"""A local copy of a collection that follows a watch.

List, then watch from the list's version; after a break watch again from the last version seen,
after 410 (or a row of breaks) list again. There is no periodic resync.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from dragoon.errors import ApiUnavailableError, DragoonError
from dragoon.kube.backoff import Backoff
from dragoon.kube.mirror import Mirror, Read
from dragoon.kube.port import Api, Object, Resource

T = TypeVar("T")
log = logging.getLogger(__name__)

# After so many breaks in a row the copy is refreshed by a list: a server might fail to continue
# from one version for ever without saying 410.
_BREAKS_BEFORE_LIST = 5


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


class Informer(Mirror[T]):
    """Follows one resource. All methods belong to the event loop that runs run().

    decode: as in Mirror. page: lists come in parts of this size, and decode runs in another thread
    for each, one at a time: for collections that are large as raw objects.
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
        super().__init__(resource, decode)
        self._api = api
        self._scope: dict[str, Any] = {"namespace": namespace, "fields": fields, "labels": labels}
        self._page = page
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._clock = clock
        self._synced = asyncio.Event()
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

    async def synced(self) -> None:
        """Waits until the first list is in the copy. Says nothing about how old the copy is."""
        await self._synced.wait()

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

    async def _fetch(self) -> tuple[list[Read[T]], int]:
        """All objects of one moment, and its version."""
        found: list[Read[T]] = []
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
