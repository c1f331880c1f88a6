"""A real API server over HTTP: raw JSON in and out.

Typed models are never used: they drop fields they do not know and cost time.
Every foreign exception is translated here.
"""

import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from typing import Any

import aiohttp

from dragoon.errors import ApiGoneError, ApiNotFoundError, ApiUnavailableError
from dragoon.kube import paths
from dragoon.kube.access import Access
from dragoon.kube.answers import SOMEBODY_ELSE, event, lines, listing, refusal, typed, version
from dragoon.kube.patching import check_shape
from dragoon.kube.port import PODS, Listing, Object, PatchKind, Resource, WatchEvent
from dragoon.kube.statuses import shortened
from dragoon.kube.transport import Query, Request, Transport

_PAGE = 500
_CONNECT_S = 10.0
_REQUEST_S = 30.0
_WATCH_S = 300
# Bookmarks come about once a minute: a stream silent for three of them is dead.
_WATCH_SILENCE_S = 180.0


class KubeClient:
    """The port `kube.port.Api` over HTTP(S).

    request_timeout is in seconds, for one request; watch_silence is how many seconds a watch may
    bring nothing, not even a bookmark, before its connection counts as dead.
    """

    def __init__(
        self,
        access: Access,
        *,
        request_timeout: float = _REQUEST_S,
        watch_silence: float = _WATCH_SILENCE_S,
        rng: random.Random | None = None,
    ) -> None:
        self._transport = Transport(access)
        self._timeout = aiohttp.ClientTimeout(total=request_timeout, sock_connect=_CONNECT_S)
        self._watch_timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_S, sock_read=watch_silence
        )
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, guards nothing

    @property
    def server(self) -> str:
        """The URL of the API server, for messages."""
        return self._transport.server

    async def version(self) -> str:
        request = Request("GET", "/version")
        return version(await self._raw(request), str(request))

    async def groups(self) -> Mapping[str, tuple[str, ...]]:
        found = await self._call(Request("GET", "/apis"))
        return {
            group["name"]: tuple(one["version"] for one in group.get("versions") or ())
            for group in found.get("groups") or ()
        }

    async def plurals(self, group: str, version: str) -> frozenset[str]:
        try:
            found = await self._call(Request("GET", paths.group(group, version)))
        except ApiNotFoundError:
            return frozenset()
        # meta/v1 APIResourceList: a subresource is listed as `plural/name`.
        names = (str(one["name"]) for one in found.get("resources") or ())
        return frozenset(name for name in names if "/" not in name)

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        return await self._call(Request("GET", paths.item(resource, name, namespace)))

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> Listing:
        path = paths.collection(resource, namespace)
        query = _selectors(fields, labels)
        try:
            return await _whole(self._pages(resource, path, [*query, ("limit", str(_PAGE))]))
        except ApiGoneError:
            # The pages outlived the server's memory of that version: ask for all at once.
            return await _whole(self._pages(resource, path, query))

    def pages(
        self,
        resource: Resource,
        *,
        size: int,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> AsyncGenerator[Listing, None]:
        query = [*_selectors(fields, labels), ("limit", str(size))]
        return self._pages(resource, paths.collection(resource, namespace), query)

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        path = paths.collection(resource, namespace)
        seconds = round(_WATCH_S * self._rng.uniform(1, 2))
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(seconds)),
            *_selectors(fields, labels),
        ]
        request = Request("GET", path, query)
        what = f"WATCH {path}"
        heard = False
        try:
            async with (
                self._response(request, self._watch_timeout) as response,
                contextlib.aclosing(self._chunks(response, what)) as chunks,
            ):
                async for line in lines(chunks):
                    heard = True
                    yield event(line, what)
        except ApiUnavailableError as error:
            if heard or not isinstance(error.__cause__, aiohttp.SocketTimeoutError):
                raise
            # So does 1.37 treat a version of its future, as after a restore: it waits, silent.
            raise ApiGoneError(
                f"{what}: nothing came after version {resource_version}, not even a bookmark"
            ) from error

    async def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        path = paths.collection(resource, paths.home(resource, body))
        query: Query = [("dryRun", "All")] if dry_run else []
        return await self._call(Request("POST", path, query, body), sent=body)

    async def replace(
        self, resource: Resource, body: Object, *, subresource: str | None = None
    ) -> Object:
        name = body.get("metadata", {}).get("name", "")
        path = paths.item(resource, name, _namespace(body), subresource)
        return await self._call(Request("PUT", path, body=body), sent=body)

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
        check_shape(patch, kind, field_manager)
        query: Query = [("fieldManager", field_manager)] if field_manager else []
        if kind is PatchKind.APPLY:
            query.append(("force", "true"))
        path = paths.item(resource, name, namespace, subresource)
        return await self._call(Request("PATCH", path, query, patch, kind.value))

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        wanted = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in wanted.items() if value is not None}
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            options["preconditions"] = preconditions
        path = paths.item(resource, name, namespace)
        await self._call(Request("DELETE", path, body=options))

    async def evict(self, name: str, *, namespace: str, uid: str | None = None) -> None:
        body: Object = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        if uid is not None:
            body["deleteOptions"] = {"preconditions": {"uid": uid}}
        path = paths.item(PODS, name, namespace, "eviction")
        await self._call(Request("POST", path, body=body))

    async def close(self) -> None:
        await self._transport.close()

    async def _pages(
        self, resource: Resource, path: str, query: Query
    ) -> AsyncGenerator[Listing, None]:
        token = ""
        while True:
            after = [("continue", token)] if token else []
            request = Request("GET", path, [*query, *after])
            items, meta = listing(await self._raw(request), str(request))
            for found in items:
                # Servers leave both out of the items of a list, and not of a watch's events.
                found.setdefault("apiVersion", resource.api_version)
                found.setdefault("kind", resource.kind)
            yield Listing(tuple(items), str(meta.get("resourceVersion", "")))
            token = meta.get("continue") or ""
            if not token:
                return

    async def _call(self, request: Request, sent: Object | None = None) -> Object:
        return typed(await self._raw(request), str(request), sent)

    async def _raw(self, request: Request) -> bytes:
        with self._translated(request):
            response = await self._transport.send(request, self._timeout)
            raw = await response.read()
        if response.status >= 300:
            raise refusal(request, response.status, raw)
        return raw

    @contextlib.asynccontextmanager
    async def _response(
        self, request: Request, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request and yields the answer's head; raises ApiError unless it is a success."""
        with self._translated(request):
            response = await self._transport.send(request, timeout)
        try:
            if response.status >= 300:
                with self._translated(request):
                    raw = await response.read()
                raise refusal(request, response.status, raw)
            yield response
        finally:
            # Cuts an unfinished stream; a body read to its end has left the connection before.
            response.close()

    async def _chunks(
        self, response: aiohttp.ClientResponse, what: str
    ) -> AsyncGenerator[bytes, None]:
        while True:
            with self._translated(what):
                chunk = await response.content.readany()
            if not chunk:
                return
            yield chunk

    @contextlib.contextmanager
    def _translated(self, what: Request | str) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise ApiUnavailableError(
                f"{what}: no answer from {self.server} in time",
                hint="check that the API server runs and can be reached from here",
            ) from error
        except aiohttp.TooManyRedirects as error:
            raise ApiUnavailableError(
                f"{what}: {self.server} redirects without end", hint=SOMEBODY_ELSE
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ApiUnavailableError(
                f"{what}: cannot talk to {self.server}: {shortened(str(error) or repr(error))}",
                hint="check the server's address, its certificate and the network",
            ) from error


async def _whole(pages: AsyncGenerator[Listing, None]) -> Listing:
    """All pages as one."""
    items: list[Object] = []
    version = ""
    async for page in pages:
        items.extend(page.items)
        version = page.resource_version
    return Listing(tuple(items), version)


def _namespace(body: Object) -> str | None:
    found = body.get("metadata", {}).get("namespace")
    return None if found is None else str(found)


def _selectors(fields: Mapping[str, str] | None, labels: str | None) -> Query:
    query: Query = []
    if fields:
        escaped = (f"{path}={_field_value(value)}" for path, value in fields.items())
        query.append(("fieldSelector", ",".join(escaped)))
    if labels:
        query.append(("labelSelector", labels))
    return query


def _field_value(value: str) -> str:
    """A value in a field selector: apimachinery's fields.EscapeValue."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
