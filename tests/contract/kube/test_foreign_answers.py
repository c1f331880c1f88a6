"""A 200 from somebody else, such as a proxy that wants a login: never an empty cluster."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoon.errors import ApiUnavailableError
from dragoon.kube.connecting import connect
from dragoon.kube.port import NODES
from tests.contract.kube.kubeconfigs import kubeconfig
from tests.contract.kube.wire import answering, wire

FOREIGN = [
    *({"login": "needed"}, {}, [], "ok", {"kind": 7}, {"kind": "Node", "metadata": []}),
    *({"kind": "Node", "spec": 5}, {"kind": "Node", "status": 5}),
]
STORED = {"name": "n", "uid": "u", "resourceVersion": "7"}
NO_LISTS = [
    *FOREIGN,
    {"kind": "Node", "metadata": {"name": "n"}},
    {"kind": "NodeList", "items": "none"},
    {"kind": "NodeList", "items": [1]},
    {"kind": "NodeList", "items": [None]},
    {"kind": "NodeList", "items": [{"metadata": None}]},
    {"kind": "NodeList", "items": [{"metadata": {**STORED, "name": ""}}]},
    {"kind": "NodeList", "items": [{"metadata": {**STORED, "name": 5}}]},
    {"kind": "NodeList", "items": [{"metadata": {**STORED, "uid": None}}]},
    {"kind": "NodeList", "items": [{"metadata": {**STORED, "labels": {"a": 5}}}]},
    {"kind": "NodeList", "items": [{"metadata": STORED, "spec": 5}]},
    {"kind": "NodeList", "items": [{"metadata": STORED, "status": []}]},
    {"kind": "NodeList", "items": [], "metadata": "none"},
]


async def answered(body: Any, folder: Path, what: str) -> Any:
    """What the client makes of it."""
    async with wire(answering(body)) as server:
        client = await connect(kubeconfig(folder / "k", {"server": server.url}))
        try:
            calls: dict[str, Any] = {
                "get": lambda: client.get(NODES, "n"),
                "create": lambda: client.create(NODES, {"metadata": {"name": "n"}}),
                "list": lambda: client.list(NODES),
                "page": lambda: anext(client.pages(NODES, size=1)),
                "groups": client.groups,
                "plurals": lambda: client.plurals("a", "v1"),
                "version": client.version,
            }
            return await calls[what]()
        finally:
            await client.close()


@pytest.mark.parametrize("body", FOREIGN, ids=str)
@pytest.mark.parametrize("what", ["get", "create", "groups", "plurals", "version"])
async def test_what_is_no_object_is_an_api_server_that_is_away(
    body: Any, what: str, tmp_path: Path
) -> None:
    with pytest.raises(ApiUnavailableError, match=r"the answer is (no object|not JSON)") as caught:
        await answered(body, tmp_path, what)
    assert "not a proxy's" in caught.value.hint


@pytest.mark.parametrize("body", NO_LISTS, ids=str)
@pytest.mark.parametrize("what", ["list", "page"])
async def test_what_is_no_list_is_no_empty_list(body: Any, what: str, tmp_path: Path) -> None:
    with pytest.raises(ApiUnavailableError, match=r"the answer is (no object|not JSON)"):
        await answered(body, tmp_path, what)


@pytest.mark.parametrize("part", ["metadata", "spec"])
async def test_what_is_written_is_answered_with_its_metadata_and_its_spec(
    part: str, tmp_path: Path
) -> None:
    node = {"kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    async with wire(answering({**node, part: None})) as server:
        client = await connect(kubeconfig(tmp_path / "k", {"server": server.url}))
        with pytest.raises(
            ApiUnavailableError, match=f"no object of Kubernetes: {part} is missing"
        ):
            await client.create(NODES, node, dry_run=True)
        with pytest.raises(
            ApiUnavailableError, match=f"no object of Kubernetes: {part} is missing"
        ):
            await client.replace(NODES, node)
        await client.close()


async def test_an_empty_list_of_go_has_null_for_its_items(tmp_path: Path) -> None:
    body = {"kind": "NodeList", "metadata": {"resourceVersion": "7"}, "items": None}
    found = await answered(body, tmp_path, "list")
    assert (found.items, found.resource_version) == ((), "7")


async def test_redirects_without_end_are_told_as_such(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(request.path)

    async with wire(answer) as server:
        client = await connect(kubeconfig(tmp_path / "k", {"server": server.url}))
        with pytest.raises(ApiUnavailableError, match="redirects without end") as caught:
            await client.get(NODES, "n")
        await client.close()
    assert "not a proxy's" in caught.value.hint
