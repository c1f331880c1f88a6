"""Copies of the objects in which other projects keep their groups, where the API server has them.

That an API is not there is normal: no informer runs for it, and nothing is said. It is looked for
again now and then, because projects are installed and removed while the controller runs.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog

from dragoon.errors import DragoonError
from dragoon.gang.records import Raw, trimmed
from dragoon.kube.informer import Informer
from dragoon.kube.mirror import Key
from dragoon.kube.port import Api, Resource

_log = structlog.get_logger(__name__)

_PATIENCE_S: Final = 10.0
_PAGE: Final = 500

Handler = Callable[[Resource, Key | None], None]
"""What of a kind has changed: an object, or (None) whether there is anything of it at all."""


class GroupCopies:
    """The named holder of one informer for each kind that is served. Implements `Objects`.

    resources: the kinds that are wanted. again: seconds between two looks at what is served.
    patience: for how many seconds the first lists are waited for.
    """

    def __init__(
        self,
        api: Api,
        resources: Iterable[Resource],
        *,
        again: float,
        patience: float = _PATIENCE_S,
    ) -> None:
        self._api = api
        self._resources = tuple(dict.fromkeys(resources))
        self._again = again
        self._patience = patience
        self._served: Mapping[Resource, tuple[str, ...]] | None = None
        self._informers: dict[Resource, Informer[Raw]] = {}
        self._running: dict[Resource, asyncio.Task[None]] = {}
        self._handlers: list[Handler] = []
        self._looked = asyncio.Event()

    def subscribe(self, handler: Handler) -> None:
        """Calls handler on the loop for every change from now on. It must not block."""
        self._handlers.append(handler)

    @property
    def informers(self) -> Mapping[Resource, Informer[Raw]]:
        """The kinds that are followed now."""
        return self._informers

    def find(self, resource: Resource, namespace: str, name: str) -> Raw | None:
        """The object, None where it is not there or not known yet."""
        informer = self._informers.get(resource)
        return None if informer is None else informer.get(name, namespace)

    def missing(self, resource: Resource) -> str:
        """Why no object of a kind is known, empty where they are."""
        if self._served is None:
            return "the API server has not been asked yet"
        informer = self._informers.get(resource)
        if informer is None:
            return f"the API server does not have {resource.api_version}"
        if informer.state.synced:
            return ""
        error = informer.state.last_error
        return f"the list could not be read: {error}" if error else "it is not listed yet"

    def refused(self, resource: Resource) -> str:
        """Why an API that is there cannot be used, empty where it can or is not there."""
        versions = (self._served or {}).get(resource, ())
        if not versions or resource.version in versions:
            return ""
        return f"found {', '.join(versions)}, allowed is {resource.version}"

    async def settled(self) -> None:
        """Waits until it is known what is served and all of it is listed, but not for ever.

        A kind that cannot be listed must not keep gangs of other kinds waiting.
        """
        await self._looked.wait()
        lists = [asyncio.ensure_future(one.synced()) for one in self._informers.values()]
        if lists:
            _, late = await asyncio.wait(lists, timeout=self._patience)
            for each in late:
                each.cancel()

    async def run(self) -> None:
        """Follows what is served until cancelled."""
        try:
            while True:
                try:
                    self._follow(await self._versions())
                except DragoonError as error:
                    _log.info("what is served cannot be read", code=error.code, error=str(error))
                await asyncio.sleep(self._again)
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)
            self._running.clear()

    async def _versions(self) -> Mapping[Resource, tuple[str, ...]]:
        """In which versions of its API group each kind is served. Raises DragoonError."""
        groups = await self._api.groups()
        names = {resource.group for resource in self._resources}
        plurals = {
            (group, version): await self._api.plurals(group, version)
            for group in names
            for version in groups.get(group, ())
        }
        return {
            resource: tuple(
                version
                for (group, version), found in plurals.items()
                if group == resource.group and resource.plural in found
            )
            for resource in self._resources
        }

    def _follow(self, served: Mapping[Resource, tuple[str, ...]]) -> None:
        """Starts and stops informers. served: the versions of each kind."""
        changed = self._served != served
        self._served = served
        for resource in self._resources:
            if resource.version not in served[resource]:
                self._stop(resource)
            elif resource not in self._running or self._running[resource].done():
                self._start(resource)
        self._looked.set()
        if changed:
            for resource in self._resources:
                self._tell(resource, None)

    def _start(self, resource: Resource) -> None:
        informer = self._informers.get(resource)
        if informer is None:
            informer = Informer(self._api, resource, decode=trimmed, page=_PAGE)
            informer.subscribe(lambda change: self._tell(resource, change.key))
            self._informers[resource] = informer
        _log.info("groups are followed", kind=resource.kind, api=resource.api_version)
        self._running[resource] = asyncio.create_task(
            informer.run(), name=f"watch {resource.plural}.{resource.group}"
        )

    def _stop(self, resource: Resource) -> None:
        task = self._running.pop(resource, None)
        if self._informers.pop(resource, None) is not None:
            _log.info("groups are gone", kind=resource.kind, api=resource.api_version)
        if task is not None:
            task.cancel()

    def _tell(self, resource: Resource, key: Key | None) -> None:
        for handler in self._handlers:
            handler(resource, key)
