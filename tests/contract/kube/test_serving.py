"""The HTTP face of the in-process server, asked without our client."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NODES, Resource
from dragoon.kube.serving import EmbeddedApi

GANGS = Resource("dragoon.dev", "v1alpha1", "gangs", "Gang", namespaced=True)


@pytest.fixture
async def embedded() -> AsyncIterator[EmbeddedApi]:
    server = EmbeddedApi(MemoryApi(), resources=[GANGS])
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def session(embedded: EmbeddedApi) -> AsyncIterator[aiohttp.ClientSession]:
    (token,) = embedded.tokens
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(embedded.url, headers=headers) as found:
        yield found


async def ask(
    session: aiohttp.ClientSession, method: str, path: str, **more: Any
) -> tuple[int, Any]:
    async with session.request(method, path, **more) as answer:
        return answer.status, await answer.json()


async def test_readiness_needs_no_token_and_everything_else_does(embedded: EmbeddedApi) -> None:
    async with aiohttp.ClientSession(embedded.url) as session:
        async with session.get("/readyz") as ready:
            assert (ready.status, await ready.text()) == (200, "ok")
        for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": "Basic x"}):
            async with session.get("/api/v1/nodes", headers=headers) as answer:
                assert answer.status == 401
                assert (await answer.json())["reason"] == "Unauthorized"


async def test_a_version_is_told(session: aiohttp.ClientSession) -> None:
    status, version = await ask(session, "GET", "/version")
    assert (status, version["major"]) == (200, "1")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/nodes/none", 404),
        ("GET", "/api/v1/unknown", 404),
        ("GET", "/nothing/here", 404),
        ("PUT", "/api/v1/nodes", 405),
        ("POST", "/api/v1/nodes/n", 405),
        ("GET", "/api/v1/nodes/n/log", 405),
        ("GET", "/api/v1/nodes?limit=many", 400),
    ],
)
async def test_errors_are_status_objects(
    embedded: EmbeddedApi, session: aiohttp.ClientSession, method: str, path: str, code: int
) -> None:
    await embedded.memory.create(NODES, {"metadata": {"name": "n"}})
    status, body = await ask(session, method, path, json={})
    assert status == code
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", code)


async def test_a_body_that_is_not_json_is_a_bad_request(session: aiohttp.ClientSession) -> None:
    for data in (b"{", b"[]"):
        status, _ = await ask(session, "POST", "/api/v1/nodes", data=data)
        assert status == 400


async def test_a_patch_of_an_unknown_kind_is_refused(session: aiohttp.ClientSession) -> None:
    status, body = await ask(session, "PATCH", "/api/v1/nodes/n", json={})
    assert status == 415
    assert "merge-patch" in body["message"]


async def test_a_replace_under_another_name_is_refused(
    embedded: EmbeddedApi, session: aiohttp.ClientSession
) -> None:
    await embedded.memory.create(NODES, {"metadata": {"name": "n"}})
    body = {"metadata": {"name": "m"}}
    assert (await ask(session, "PUT", "/api/v1/nodes/n", json=body))[0] == 400


async def test_a_custom_resource_is_served_where_it_was_registered(
    session: aiohttp.ClientSession,
) -> None:
    place = "/apis/dragoon.dev/v1alpha1/namespaces/team/gangs"
    status, made = await ask(session, "POST", place, json={"metadata": {"name": "g"}})
    assert (status, made["metadata"]["namespace"], made["kind"]) == (201, "team", "Gang")
    assert (await ask(session, "GET", f"{place}/g"))[1] == made


async def test_pages_are_of_one_moment_and_expire(
    embedded: EmbeddedApi, session: aiohttp.ClientSession
) -> None:
    for name in ("a", "b", "c"):
        await embedded.memory.create(NODES, {"metadata": {"name": name}})
    _, first = await ask(session, "GET", "/api/v1/nodes?limit=2")
    await embedded.memory.delete(NODES, "c")
    token = first["metadata"]["continue"]
    _, second = await ask(session, "GET", f"/api/v1/nodes?limit=2&continue={token}")
    assert [each["metadata"]["name"] for each in first["items"]] == ["a", "b"]
    assert [each["metadata"]["name"] for each in second["items"]] == ["c"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}
    status, body = await ask(session, "GET", f"/api/v1/nodes?limit=2&continue={token}")
    assert (status, body["reason"]) == (410, "Expired")


async def test_a_watch_ends_after_the_time_it_asked_for(
    session: aiohttp.ClientSession,
) -> None:
    query = "watch=true&resourceVersion=1&timeoutSeconds=0.05"
    async with session.get(f"/api/v1/nodes?{query}") as answer:
        assert await answer.read() == b""
