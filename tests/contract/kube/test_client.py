"""The HTTP client: what it sends, and what it makes of answers that are not as they should be."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoon import __version__
from dragoon.errors import (
    ApiConflictError,
    ApiError,
    ApiForbiddenError,
    ApiGoneError,
    ApiInvalidError,
    ApiNotFoundError,
    ApiUnavailableError,
)
from dragoon.kube.access import Access
from dragoon.kube.client import KubeClient
from dragoon.kube.connecting import connect
from dragoon.kube.informer import Informer
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, NODES, SLICES, Object, PatchKind
from dragoon.kube.serving import EmbeddedApi
from tests.contract.kube.wire import Answer, Wire, answering, streaming, wire

METADATA = {"name": "n", "uid": "u", "resourceVersion": "7"}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": METADATA}


@contextlib.asynccontextmanager
async def client_of(url: str, **settings: Any) -> AsyncIterator[KubeClient]:
    access = Access(url, authorization=lambda: "Bearer very-secret")
    client = KubeClient(access, **settings)
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def talking(answer: Answer, **settings: Any) -> AsyncIterator[tuple[KubeClient, Wire]]:
    async with wire(answer) as server, client_of(server.url, **settings) as client:
        yield client, server


@pytest.fixture
async def embedded() -> AsyncIterator[EmbeddedApi]:
    server = EmbeddedApi(MemoryApi())
    await server.start()
    yield server
    await server.stop()


async def test_every_request_says_who_asks() -> None:
    async with talking(answering(NODE)) as (client, server):
        await client.get(NODES, "n")
    (request,) = server.requests
    assert request.headers["User-Agent"] == f"dragoon/{__version__}"
    assert request.headers["Accept"] == "application/json"
    assert request.headers["Authorization"] == "Bearer very-secret"


async def test_paths_and_queries_reach_the_server_as_meant() -> None:
    async with talking(answering({"kind": "AnyList", "metadata": {}})) as (client, server):
        await client.get(CLAIMS, "c", namespace="team")
        fields = {"metadata.name": "a,b=c\\d", "spec.driver": "x"}
        await client.list(SLICES, fields=fields, labels="a in (b, c),!d")
    first, second = server.requests
    assert first.path == "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/c"
    assert second.path == "/apis/resource.k8s.io/v1/resourceslices"
    assert second.query["fieldSelector"] == r"metadata.name=a\,b\=c\\d,spec.driver=x"
    assert second.query["labelSelector"] == "a in (b, c),!d"


@pytest.mark.parametrize("kind", PatchKind)
async def test_a_patch_has_the_content_type_of_its_kind(kind: PatchKind) -> None:
    patch: Any = [{"op": "remove", "path": "/x"}] if kind is PatchKind.JSON else {"a": None}
    async with talking(answering(NODE)) as (client, server):
        await client.patch(NODES, "n", patch, kind=kind, field_manager="me", subresource="status")
    (request,) = server.requests
    assert request.headers["Content-Type"] == kind.value
    assert json.loads(server.bodies[0]) == patch
    assert request.path == "/api/v1/nodes/n/status"
    assert request.query["fieldManager"] == "me"
    assert request.query.get("force") == ("true" if kind is PatchKind.APPLY else None)


async def test_a_delete_carries_its_preconditions() -> None:
    async with talking(answering({"kind": "Status"})) as (client, server):
        await client.delete(NODES, "n", uid="u", resource_version="7")
        await client.delete(NODES, "n")
    first, second = map(json.loads, server.bodies)
    assert first["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert "preconditions" not in second


@pytest.mark.parametrize(
    ("code", "error", "retryable"),
    [
        (400, ApiInvalidError, False),
        (401, ApiForbiddenError, False),
        (403, ApiForbiddenError, False),
        (404, ApiNotFoundError, False),
        (409, ApiConflictError, True),
        (410, ApiGoneError, True),
        (422, ApiInvalidError, False),
        (429, ApiUnavailableError, True),
        (500, ApiUnavailableError, True),
        (503, ApiUnavailableError, True),
        (418, ApiError, False),
    ],
)
async def test_c50_every_refusal_has_its_error(
    code: int, error: type[ApiError], retryable: bool
) -> None:
    status = {"kind": "Status", "message": "because of that", "code": code}
    async with talking(answering(status, code)) as (client, _server):
        with pytest.raises(ApiError, match="because of that") as caught:
            await client.get(NODES, "n")
    assert type(caught.value) is error
    assert (caught.value.status, caught.value.retryable) == (code, retryable)
    assert "very-secret" not in str(caught.value)


async def test_a_huge_message_is_cut() -> None:
    status = {"kind": "Status", "message": "x" * 100_000, "code": 422}
    async with talking(answering(status, 422)) as (client, _server):
        with pytest.raises(ApiInvalidError) as caught:
            await client.get(NODES, "n")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("body", "code"), [("<html>proxy</html>", 200), ("<html>", 502), ("", 200)]
)
async def test_an_answer_that_is_not_json_is_no_answer(body: str, code: int) -> None:
    async with talking(answering(body, code)) as (client, _server):
        with pytest.raises(ApiUnavailableError):
            await client.get(NODES, "n")


async def test_a_server_that_is_not_there_is_named_with_a_hint() -> None:
    async with wire(answering(NODE)) as server:
        url = server.url
    async with client_of(url) as client:
        with pytest.raises(ApiUnavailableError, match=url) as caught:
            await client.get(NODES, "n")
    assert caught.value.hint
    assert caught.value.retryable


LONGER = (0.05, 0.5, 5, 50)
"""Seconds, the shortest first: on a busy machine what does answer takes long, too."""


async def test_c50_a_server_that_does_not_answer_is_given_up(embedded: EmbeddedApi) -> None:
    hang = embedded.memory.faults.hang(times=None)
    for seconds in LONGER:
        async with client_of(embedded.url, request_timeout=seconds) as client:
            await _use_token(client, embedded)
            with pytest.raises(ApiUnavailableError, match="no answer"):
                await client.get(NODES, "n")
        if hang.hits:
            break
    assert hang.hits
    hang.lift()


async def test_a_watch_that_falls_silent_is_given_up(embedded: EmbeddedApi) -> None:
    before = embedded.memory.resource_version
    await embedded.memory.create(NODES, {"metadata": {"name": "n"}})
    for seconds in LONGER:
        async with client_of(embedded.url, watch_silence=seconds) as client:
            await _use_token(client, embedded)
            stream = client.watch(NODES, resource_version=before)
            try:
                first = await anext(stream)
            except (ApiUnavailableError, ApiGoneError):
                continue
            assert first.kind == "ADDED"
            with pytest.raises(ApiUnavailableError, match="no answer"):
                await anext(stream)
            return
    pytest.fail("the event never came in time")


async def test_a_watch_that_never_said_anything_is_not_continued(embedded: EmbeddedApi) -> None:
    async with client_of(embedded.url, watch_silence=0.05) as client:
        await _use_token(client, embedded)
        stream = client.watch(NODES, resource_version=embedded.memory.resource_version)
        with pytest.raises(ApiGoneError, match="not even a bookmark"):
            await anext(stream)


async def test_a_watch_asks_for_bookmarks_and_an_end() -> None:
    async with talking(streaming()) as (client, server):
        async for _event in client.watch(NODES, resource_version="5"):
            pytest.fail("the stream was empty")
    query = server.requests[0].query
    assert query["watch"] == query["allowWatchBookmarks"] == "true"
    assert query["resourceVersion"] == "5"
    assert 300 <= int(query["timeoutSeconds"]) <= 600


async def test_events_may_be_cut_anywhere_and_larger_than_any_buffer() -> None:
    metadata: Any = NODE["metadata"]
    big = {**NODE, "metadata": {**metadata, "annotations": {"x": "y" * 6_000_000}}}
    lines = b"".join(
        json.dumps({"type": kind, "object": found}).encode() + b"\n"
        for kind, found in (("ADDED", NODE), ("MODIFIED", big), ("DELETED", NODE))
    )
    cuts = [0, 5, 100, 101, 3_000_000, len(lines) - 3, len(lines)]
    chunks = [lines[start:end] for start, end in itertools.pairwise(cuts)]
    async with talking(streaming(*chunks)) as (client, _server):
        seen = [event async for event in client.watch(NODES, resource_version="5")]
    assert [event.kind for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[1].object == big


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ({"type": "ERROR", "object": {"kind": "Status", "code": 410}}, ApiGoneError),
        ({"type": "ERROR", "object": {"kind": "Status", "code": 504}}, ApiUnavailableError),
        ({"type": "ADDED"}, ApiUnavailableError),
        ({"object": {}}, ApiUnavailableError),
    ],
)
async def test_a_watch_that_reports_an_error_raises_it(line: Any, error: type[ApiError]) -> None:
    async with talking(streaming(json.dumps(line).encode() + b"\n")) as (client, _server):
        with pytest.raises(error):
            await anext(client.watch(NODES, resource_version="5"))


async def test_a_broken_line_of_a_watch_is_a_broken_connection() -> None:
    async with talking(streaming(b'{"type": "ADDED", "obj\n')) as (client, _server):
        with pytest.raises(ApiUnavailableError, match="not JSON"):
            await anext(client.watch(NODES, resource_version="5"))


async def test_a_long_list_comes_in_pages_of_one_version(embedded: EmbeddedApi) -> None:
    for number in range(1201):
        await embedded.memory.create(NODES, {"metadata": {"name": f"n{number}"}})
    async with client_of(embedded.url) as client:
        await _use_token(client, embedded)
        listing = await client.list(NODES)
    assert listing == await embedded.memory.list(NODES)


async def test_pages_that_grew_too_old_are_fetched_anew_at_once() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if "continue" in request.query:
            return web.json_response({"kind": "Status", "code": 410}, status=410)
        more = {"continue": "token"} if "limit" in request.query else {}
        meta = {"resourceVersion": "9", **more}
        return web.json_response({"kind": "NodeList", "metadata": meta, "items": [NODE]})

    async with talking(answer) as (client, server):
        listing = await client.list(NODES)
    assert listing.items == (NODE,)
    assert [sorted(request.query) for request in server.requests] == [
        ["limit"],
        ["continue", "limit"],
        [],
    ]


async def test_an_informer_survives_a_restart_of_the_server(
    embedded: EmbeddedApi, tmp_path: Path
) -> None:
    client = await connect(embedded.write_kubeconfig(tmp_path / "kubeconfig"))
    told = asyncio.Event()
    informer: Informer[Object] = Informer(client, NODES, sleep=lambda _delay: asyncio.sleep(0))
    informer.subscribe(lambda _change: told.set())
    task = asyncio.create_task(informer.run())
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        stack.push_async_callback(_cancel, task)
        await stack.enter_async_context(asyncio.timeout(60))
        await informer.synced()
        await embedded.memory.create(NODES, {"metadata": {"name": "before"}})
        await told.wait()
        told.clear()
        await embedded.stop()
        await embedded.memory.create(NODES, {"metadata": {"name": "meanwhile"}})
        await embedded.start()
        await told.wait()
        assert informer.get("meanwhile") == await client.get(NODES, "meanwhile")
        assert informer.get("before") is not None


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _use_token(client: KubeClient, server: EmbeddedApi) -> None:
    server.tokens.add("very-secret")
    assert client.server == server.url
