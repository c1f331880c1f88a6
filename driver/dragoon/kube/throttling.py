"""A limit on writes: so many a second on average, and a burst of them at once.

Reads are not counted: informers read, and they must not wait behind writes.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from dragoon.kube.port import Api, Listing, Object, PatchKind, Resource, WatchEvent


class Throttle:
    """A token bucket. qps: tokens a second. burst: how many it holds, at least 1.

    Whoever finds it empty gets the next token that falls due: first come, first served.
    """

    def __init__(
        self,
        qps: float,
        burst: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._qps = qps
        self._burst = max(1, burst)
        self._clock = clock
        self._sleep = sleep
        self._tokens = float(self._burst)
        self._filled = clock()

    async def take(self) -> None:
        """Waits for a token."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._qps)
        self._filled = now
        self._tokens -= 1
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._qps)


class ThrottledApi:
    """The port `kube.port.Api` whose writes wait for a token each."""

    def __init__(self, api: Api, throttle: Throttle) -> None:
        self._api = api
        self._throttle = throttle

    async def version(self) -> str:
        return await self._api.version()

    async def groups(self) -> Mapping[str, tuple[str, ...]]:
        return await self._api.groups()

    async def plurals(self, group: str, version: str) -> frozenset[str]:
        return await self._api.plurals(group, version)

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        return await self._api.get(resource, name, namespace=namespace)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> Listing:
        return await self._api.list(resource, namespace=namespace, fields=fields, labels=labels)

    def pages(self, resource: Resource, **scope: Any) -> AsyncGenerator[Listing, None]:
        return self._api.pages(resource, **scope)

    def watch(self, resource: Resource, **scope: Any) -> AsyncGenerator[WatchEvent, None]:
        return self._api.watch(resource, **scope)

    async def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        await self._throttle.take()
        return await self._api.create(resource, body, dry_run=dry_run)

    async def replace(
        self, resource: Resource, body: Object, *, subresource: str | None = None
    ) -> Object:
        await self._throttle.take()
        return await self._api.replace(resource, body, subresource=subresource)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        *,
        kind: PatchKind = PatchKind.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> Object:
        await self._throttle.take()
        return await self._api.patch(
            resource,
            name,
            patch,
            kind=kind,
            namespace=namespace,
            subresource=subresource,
            field_manager=field_manager,
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        await self._throttle.take()
        await self._api.delete(
            resource, name, namespace=namespace, uid=uid, resource_version=resource_version
        )

    async def evict(self, name: str, *, namespace: str, uid: str | None = None) -> None:
        await self._throttle.take()
        await self._api.evict(name, namespace=namespace, uid=uid)

    async def close(self) -> None:
        await self._api.close()
