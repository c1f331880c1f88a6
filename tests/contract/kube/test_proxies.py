"""Through which proxy an API server is reached, and as whom."""

import asyncio
from pathlib import Path

import pytest

from dragoon.errors import ApiUnavailableError, ConfigError
from dragoon.kube.access import proxy_at, proxy_of_environment
from dragoon.kube.connecting import connect
from dragoon.kube.port import NODES
from tests.contract.kube.kubeconfigs import kubeconfig
from tests.contract.kube.wire import answering, wire

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
PROVEN = "Basic YW5uYTpwYXNz"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("proxy.example:3128", "http://proxy.example:3128"),
        ("http://u:p@proxy.example:3128", "http://u:p@proxy.example:3128"),
        ("https://proxy.example", "https://proxy.example"),
    ],
)
def test_a_proxy_without_a_scheme_is_http_as_for_kubectl(given: str, meant: str) -> None:
    assert proxy_at(given, "HTTPS_PROXY") == meant


def test_the_environment_names_a_proxy_in_the_same_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    assert proxy_of_environment("https://api.example:6443") == "http://proxy.example:3128"
    monkeypatch.setenv("https_proxy", "socks5://proxy.example")
    with pytest.raises(ConfigError, match="environment variable HTTPS_PROXY: found a proxy"):
        proxy_of_environment("https://api.example:6443")


@pytest.mark.parametrize("given", ["socks5://a:1", "http://a:99999", "http://", "://", ":", "[::"])
def test_a_proxy_of_another_form_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY: found a proxy of another form"):
        proxy_at(given, "HTTPS_PROXY")


def through(proxy: str, server: str, path: Path) -> Path:
    """A kubeconfig that goes through the proxy at `host:port` as anna."""
    return kubeconfig(path, {"server": server, "proxy-url": f"http://anna:pass@{proxy}"})


async def test_requests_go_through_the_proxy_of_the_file_with_its_user(tmp_path: Path) -> None:
    async with wire(answering(NODE)) as proxy:
        address = proxy.url.removeprefix("http://")
        client = await connect(through(address, "http://api.invalid", tmp_path / "k"))
        assert await client.get(NODES, "n") == NODE
        await client.close()
    (request,) = proxy.requests
    assert request.headers["Host"] == "api.invalid"
    assert request.headers["Proxy-Authorization"] == PROVEN


async def test_a_proxy_is_told_its_user_before_anything_is_encrypted(tmp_path: Path) -> None:
    heads: list[str] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 407 no\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        address = f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        client = await connect(through(address, "https://api.invalid", tmp_path / "k"))
        with pytest.raises(ApiUnavailableError) as caught:
            await client.get(NODES, "n")
        await client.close()
    assert heads[0].startswith("CONNECT api.invalid:443 ")
    assert f"Proxy-Authorization: {PROVEN}" in heads[0]
    assert "pass" not in str(caught.value)


async def test_the_environment_names_a_proxy_and_who_is_reached_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with wire(answering(NODE)) as proxy, wire(answering(NODE)) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for url in ("http://api.invalid", server.url):
            client = await connect(kubeconfig(tmp_path / "k", {"server": url}))
            assert await client.get(NODES, "n") == NODE
            await client.close()
    assert [len(proxy.requests), len(server.requests)] == [1, 1]
