"""A MemoryApi behind real HTTP on a loopback port: what `dragoon demo` and scenario tests ask.

Serves the paths of `paths`, watches as JSON lines, pages of lists, Status objects for errors,
`/version` and `/readyz`; a bearer token is demanded. No TLS: it listens on the loopback only.
"""

import asyncio
import contextlib
import os
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec
import yaml
from aiohttp import web

from dragoon.errors import (
    ApiError,
    ApiForbiddenError,
    ApiGoneError,
    ApiInvalidError,
    ApiNotFoundError,
    DragoonError,
)
from dragoon.kube.http_requests import (
    body_of,
    check_same,
    json_of,
    number_of,
    patch_kind,
    selectors_of,
)
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import PODS, Object, Resource
from dragoon.kube.statuses import status_of
from dragoon.kube.streaming import stream_events
from dragoon.kube.traits import TRAITS

_HOST: Final = "127.0.0.1"
_BODY_LIMIT = 3 * 2**20
_SNAPSHOTS = 16
_WATCH_S = 1800


class EmbeddedApi:
    """Serves `memory` until stop(). tokens: the bearer tokens accepted now; change it to rotate.

    resources: what is served besides the resources of `port`, such as custom resources.
    """

    def __init__(self, memory: MemoryApi, *, resources: Iterable[Resource] = ()) -> None:
        self.memory = memory
        self.tokens = {secrets.token_urlsafe(24)}
        self._resources = {
            (found.group, found.version, found.plural): found for found in (*TRAITS, *resources)
        }
        self._snapshots: OrderedDict[str, tuple[str, list[Object]]] = OrderedDict()
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._stopping = asyncio.Event()

    @property
    def url(self) -> str:
        """Where it listens; known after start()."""
        return f"http://{_HOST}:{self._port}"

    async def start(self) -> None:
        """Listens on a free port; after a stop() on the same port again."""
        self._stopping = asyncio.Event()
        app = web.Application(client_max_size=_BODY_LIMIT, middlewares=[self._guard])
        app.router.add_get("/readyz", _ready)
        app.router.add_get("/version", self._version)
        app.router.add_get("/apis", self._groups)
        app.router.add_get("/apis/{group}/{version}", self._plurals)
        for root in ("/api/{version}", "/apis/{group}/{version}"):
            # The longer first: `/namespaces/x/pods` also looks like a subresource of x.
            for scope in ("/namespaces/{namespace}", ""):
                place = f"{root}{scope}/{{plural}}"
                app.router.add_route("*", place, self._on_collection)
                app.router.add_route("*", f"{place}/{{name}}", self._on_item)
                app.router.add_route("*", f"{place}/{{name}}/{{subresource}}", self._on_item)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, _HOST, self._port, reuse_address=True)
        await site.start()
        self._runner = runner
        self._port = runner.addresses[0][1]

    async def _version(self, _request: web.Request) -> web.Response:
        version = await self.memory.version()
        major, minor = version.removeprefix("v").split(".")[:2]
        return _answer({"major": major, "minor": minor, "gitVersion": version})

    async def _groups(self, _request: web.Request) -> web.Response:
        groups = [
            {"name": name, "versions": [{"version": version} for version in versions]}
            for name, versions in (await self.memory.groups()).items()
        ]
        return _answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    async def _plurals(self, request: web.Request) -> web.Response:
        info = request.match_info
        found = await self.memory.plurals(info["group"], info["version"])
        if not found:
            raise ApiNotFoundError("the server could not find the requested resource", status=404)
        names = [{"name": name} for name in sorted(found)]
        return _answer({"kind": "APIResourceList", "apiVersion": "v1", "resources": names})

    async def stop(self) -> None:
        """Closes the port and every connection. The objects stay in `memory`. Idempotent."""
        self._stopping.set()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def write_kubeconfig(self, path: Path) -> Path:
        """Writes a kubeconfig with a token of this server, mode 0600; returns the path."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "dragoon",
            "clusters": [{"name": "dragoon", "cluster": {"server": self.url}}],
            "users": [{"name": "dragoon", "user": {"token": min(self.tokens)}}],
            "contexts": [{"name": "dragoon", "context": {"cluster": "dragoon", "user": "dragoon"}}],
        }
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w") as file:
            yaml.safe_dump(config, file)
        return path

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Checks the token and turns errors into Status answers."""
        try:
            if request.path != "/readyz":
                self._check_token(request.headers.get("Authorization", ""))
            return await handler(request)
        except web.HTTPException as error:
            return _answer(status_of(ApiError(error.reason, status=error.status)))
        except ApiError as error:
            return _answer(status_of(error))
        except DragoonError as error:
            return _answer(status_of(ApiInvalidError(error.message, status=400)))

    def _check_token(self, header: str) -> None:
        scheme, _, token = header.partition(" ")
        known = any(secrets.compare_digest(token, each) for each in self.tokens)
        if scheme.lower() != "bearer" or not known:
            raise ApiForbiddenError("Unauthorized", status=401)

    def _resource(self, request: web.Request) -> Resource:
        info = request.match_info
        key = (info.get("group", ""), info["version"], info["plural"])
        found = self._resources.get(key)
        if found is None:
            raise ApiNotFoundError("the server could not find the requested resource", status=404)
        return found

    async def _on_collection(self, request: web.Request) -> web.StreamResponse:
        resource = self._resource(request)
        namespace = request.match_info.get("namespace")
        if request.method == "POST":
            body = await body_of(request)
            if namespace:
                body.setdefault("metadata", {}).setdefault("namespace", namespace)
            dry_run = request.query.get("dryRun") == "All"
            return _answer(await self.memory.create(resource, body, dry_run=dry_run), 201)
        if request.method != "GET":
            raise web.HTTPMethodNotAllowed(request.method, ["GET", "POST"])
        if request.query.get("watch") in {"true", "1"}:
            return await self._watch(request, resource, namespace)
        return _answer(await self._list(request, resource, namespace))

    async def _on_item(self, request: web.Request) -> web.StreamResponse:
        resource = self._resource(request)
        info = request.match_info
        name, namespace, subresource = info["name"], info.get("namespace"), info.get("subresource")
        memory = self.memory
        if request.method == "GET" and subresource in {None, "status"}:
            return _answer(await memory.get(resource, name, namespace=namespace))
        if request.method == "DELETE":
            wanted = (await body_of(request)).get("preconditions") or {}
            await memory.delete(
                resource,
                name,
                namespace=namespace,
                uid=wanted.get("uid"),
                resource_version=wanted.get("resourceVersion"),
            )
            return _answer({"apiVersion": "v1", "kind": "Status", "status": "Success"})
        if request.method == "POST" and (resource, subresource) == (PODS, "eviction"):
            wanted = ((await body_of(request)).get("deleteOptions") or {}).get(
                "preconditions"
            ) or {}
            await memory.evict(name, namespace=str(namespace), uid=wanted.get("uid"))
            return _answer({"apiVersion": "v1", "kind": "Status", "status": "Success"}, 201)
        if request.method == "PUT":
            body = await body_of(request)
            check_same(body, name, namespace)
            return _answer(await memory.replace(resource, body, subresource=subresource))
        if request.method == "PATCH":
            stored = await memory.patch(
                resource,
                name,
                await json_of(request),
                kind=patch_kind(request),
                namespace=namespace,
                subresource=subresource,
                field_manager=request.query.get("fieldManager"),
            )
            return _answer(stored)
        raise web.HTTPMethodNotAllowed(request.method, ["GET", "PUT", "PATCH", "DELETE", "POST"])

    async def _list(
        self, request: web.Request, resource: Resource, namespace: str | None
    ) -> Object:
        token = request.query.get("continue")
        if token:
            if token not in self._snapshots:
                raise ApiGoneError("The provided continue parameter is too old", status=410)
            revision, items = self._snapshots.pop(token)
        else:
            listing = await self.memory.list(resource, namespace=namespace, **selectors_of(request))
            revision, items = listing.resource_version, list(listing.items)
        limit = int(number_of(request, "limit", len(items)))
        meta = {"resourceVersion": revision}
        if len(items) > limit:
            meta["continue"] = self._remember(revision, items[limit:])
        shown = [
            {name: part for name, part in found.items() if name not in {"apiVersion", "kind"}}
            for found in items[:limit]
        ]
        return {
            "apiVersion": resource.api_version,
            "kind": f"{resource.kind}List",
            "metadata": meta,
            "items": shown,
        }

    def _remember(self, revision: str, rest: list[Object]) -> str:
        token = secrets.token_urlsafe(12)
        self._snapshots[token] = (revision, rest)
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return token

    async def _watch(
        self, request: web.Request, resource: Resource, namespace: str | None
    ) -> web.StreamResponse:
        stream = self.memory.watch(
            resource,
            resource_version=request.query.get("resourceVersion", ""),
            namespace=namespace,
            **selectors_of(request),
        )
        seconds = number_of(request, "timeoutSeconds", _WATCH_S)
        return await stream_events(request, stream, seconds, self._stopping)


def _answer(body: Object, code: int = 200) -> web.Response:
    if body.get("kind") == "Status" and "code" in body:
        code = body["code"]
    return web.Response(
        body=msgspec.json.encode(body), status=code, content_type="application/json"
    )


async def _ready(_request: web.Request) -> web.Response:
    return web.Response(text="ok")
