"""Which server is asked, as whom, and what is said when that cannot be found out."""

import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.errors import ApiForbiddenError, ApiUnavailableError, ConfigError
from dragoon.kube.access import TokenFile
from dragoon.kube.connecting import connect
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NODES
from dragoon.kube.serving import EmbeddedApi
from tests.contract.kube.certificates import Certificates, make_certificates
from tests.contract.kube.kubeconfigs import kubeconfig
from tests.contract.kube.wire import answering, wire

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


@pytest.fixture
async def embedded() -> AsyncIterator[EmbeddedApi]:
    server = EmbeddedApi(MemoryApi())
    await server.start()
    await server.memory.create(NODES, NODE)
    yield server
    await server.stop()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates") / "made")


async def server_of(given: Path | None = None, **places: Any) -> str:
    client = await connect(given, **places)
    await client.close()
    return client.server


async def test_the_given_file_comes_first_then_the_variable_then_the_pod_then_home(
    tmp_path: Path,
) -> None:
    given = kubeconfig(tmp_path / "given", {"server": "http://given"})
    variable = kubeconfig(tmp_path / "variable", {"server": "http://variable"})
    kubeconfig(tmp_path / "home" / ".kube" / "config", {"server": "http://home"})
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("secret")
    make_certificates(tmp_path / "made").authority.rename(account / "ca.crt")
    environ = {
        "HOME": str(tmp_path / "home"),
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "443",
        "KUBECONFIG": str(variable),
    }
    places: dict[str, Any] = {"environ": environ, "service_account": account}
    assert await server_of(given, **places) == "http://given"
    assert await server_of(**places) == "http://variable"
    del environ["KUBECONFIG"]
    assert await server_of(**places) == "https://[fd00::1]:443"
    del environ["KUBERNETES_SERVICE_HOST"]
    assert await server_of(**places) == "http://home"


async def test_without_any_of_them_every_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\$KUBECONFIG.*pod.*\.kube/config") as caught:
        await connect(environ={"HOME": str(tmp_path)})
    assert "--kubeconfig" in caught.value.hint


async def test_several_files_of_the_variable_are_merged_and_missing_ones_skipped(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(yaml.safe_dump({"current-context": "c", "contexts": [], "clusters": []}))
    kubeconfig(second, {"server": "http://merged"})
    listed = f"{tmp_path / 'missing'}:{first}:{second}"
    assert await server_of(environ={"KUBECONFIG": listed}) == "http://merged"


async def test_of_several_files_that_name_a_context_the_first_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for file in (first, second):
        config = yaml.safe_load(kubeconfig(file, {"server": f"http://{file.name}"}).read_text())
        for entry in (*config["contexts"], *config["clusters"], config["contexts"][0]["context"]):
            entry |= {key: file.name for key in ("name", "cluster") if entry.get(key) == "c"}
        file.write_text(yaml.safe_dump({**config, "current-context": file.name}))
    assert await server_of(environ={"KUBECONFIG": f"{first}:{second}"}) == "http://first"
    assert await server_of(environ={"KUBECONFIG": f"{second}:{first}"}) == "http://second"


async def test_a_token_file_lies_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "token").write_text("secret")
    first = tmp_path / "a"
    first.write_text(yaml.safe_dump({"current-context": "c"}))
    async with wire(answering(NODE)) as server:
        second = kubeconfig(tmp_path / "b" / "k", {"server": server.url}, {"tokenFile": "token"})
        client = await connect(environ={"KUBECONFIG": f"{first}:{second}"})
        await client.get(NODES, "n")
        await client.close()
    assert server.requests[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "YAML"),
        ("[]", "mapping"),
        ("", "mapping"),
        ("clusters: {}", "current-context"),
        ("clusters: nine", "clusters"),
        ("current-context: c\ncontexts: []\nclusters: []", "c"),
        ("current-context: c\ncontexts: [{name: c}]\nclusters: []", "context"),
        ("current-context: c\ncontexts: [5]\nclusters: []", "contexts"),
        ("current-context: c\ncontexts: [{name: c, context: {cluster: x}}]\nclusters: []", "x"),
        (
            (
                "current-context: c\ncontexts: [{name: c, context: {cluster: x}}]\n"
                "clusters: [{name: x, cluster: {}}]"
            ),
            "server",
        ),
    ],
)
async def test_a_broken_file_is_a_config_error_that_names_it(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        await connect(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "user", "told"),
    [
        ({"server": "http://[::1"}, {}, "cluster.server: found 'http://[::1', allowed is a URL"),
        ({"server": "http://a:99999"}, {}, "cluster.server: found 'http://a:99999', allowed is a"),
        ({"server": "https://"}, {}, "cluster.server: found 'https:', allowed is a URL"),
        ({"server": 7}, {}, "clusters[0].cluster.server: found int, allowed is text"),
        ({"tls-server-name": 7}, {}, "cluster.tls-server-name: found int, allowed is text"),
        ({"proxy-url": "bad://x"}, {}, "cluster.proxy-url: found a proxy of another form"),
        ({"proxy-url": "http://a:b@c:99999"}, {}, "proxy-url: found a proxy of another form"),
        ({}, {"token": 12345}, "users[0].user.token: found int, allowed is text"),
        ({}, {"exec": 7}, "users[0].user.exec: found int, allowed is a mapping"),
        ({}, {"exec": {"command": ["x"]}}, "user.exec.command: found list, allowed is text"),
        ({}, {"exec": {"apiVersion": 1}}, "user.exec.apiVersion: found int, allowed is text"),
        ({}, {"exec": {"args": "12345"}}, "user.exec.args: found no list of str"),
        ({}, {"exec": {"env": [1]}}, "user.exec.env: found no list of dict"),
        ({}, {"exec": {"env": [{"name": "A"}]}}, "exec.env[0]: found no name and value"),
    ],
)
async def test_a_value_of_another_form_is_named_and_no_secret_is_shown(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], told: str
) -> None:
    path = kubeconfig(tmp_path / "k", {"server": "http://127.0.0.1:1", **cluster}, user)
    with pytest.raises(ConfigError) as caught:
        await connect(path)
    assert told in caught.value.message
    assert str(path) in caught.value.message
    assert "12345" not in caught.value.message
    assert "a:b@" not in caught.value.message


async def test_a_missing_file_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--kubeconfig.*no such file"):
        await connect(tmp_path / "none")


@pytest.mark.parametrize(
    "cluster",
    [
        {"certificate-authority": "/none/ca.crt"},
        {"certificate-authority-data": "not base64!"},
        {"certificate-authority-data": base64.b64encode(b"not a certificate").decode()},
    ],
)
async def test_certificates_that_cannot_be_loaded_are_a_config_error(
    tmp_path: Path, cluster: dict[str, str]
) -> None:
    path = kubeconfig(tmp_path / "k", {"server": "https://127.0.0.1:1", **cluster})
    with pytest.raises(ConfigError, match=str(path)):
        await connect(path)


async def test_the_embedded_servers_kubeconfig_is_private(
    embedded: EmbeddedApi, tmp_path: Path
) -> None:
    path = tmp_path / "k"
    path.write_text("older, and open to all")
    path.chmod(0o644)
    embedded.write_kubeconfig(path)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_wrong_token_is_refused_with_a_hint_and_not_told(
    embedded: EmbeddedApi, tmp_path: Path
) -> None:
    user = {"token": "wrong-secret"}
    client = await connect(kubeconfig(tmp_path / "k", {"server": embedded.url}, user))
    with pytest.raises(ApiForbiddenError) as caught:
        await client.get(NODES, "n")
    await client.close()
    assert caught.value.status == 401
    assert "token" in caught.value.hint
    assert "wrong-secret" not in str(caught.value)


async def test_a_token_file_that_was_rotated_is_read_again_after_a_refusal(
    embedded: EmbeddedApi, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    embedded.tokens = {"first"}
    token.write_text("first\n")
    user = {"tokenFile": "token"}
    client = await connect(kubeconfig(tmp_path / "k", {"server": embedded.url}, user))
    assert await client.get(NODES, "n")
    embedded.tokens = {"second"}
    with pytest.raises(ApiForbiddenError):
        await client.get(NODES, "n")
    token.write_text("second\n")
    assert await client.get(NODES, "n")
    async with contextlib.aclosing(client.watch(NODES, resource_version="0")) as stream:
        assert (await anext(stream)).kind == "ADDED"
    await client.close()


def test_a_token_file_is_read_again_once_a_minute(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "token"
    path.write_text("one\n")
    token = TokenFile(path, clock=lambda: now[0])
    path.write_text("two\n")
    now[0] = 59.0
    assert token.header() == "Bearer one"
    now[0] = 60.0
    assert token.header() == "Bearer two"


@pytest.mark.parametrize("break_it", [Path.unlink, lambda path: path.write_text("")])
def test_a_token_file_that_breaks_later_leaves_the_last_token(
    tmp_path: Path, break_it: Any
) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    token = TokenFile(path)
    break_it(path)
    token.renew()
    assert token.header() == "Bearer one"


@pytest.mark.parametrize("content", [None, ""])
def test_a_token_file_without_a_token_is_a_config_error(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=str(path)):
        TokenFile(path)


async def test_a_pod_uses_its_service_account(certificates: Certificates, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(certificates.authority.read_bytes())
    (tmp_path / "token").write_text("of the pod\n")
    async with wire(answering(NODE), certificates.serving()) as server:
        host, port = server.url.removeprefix("https://").split(":")
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        client = await connect(environ=environ, service_account=tmp_path)
        assert await client.get(NODES, "n") == NODE
        await client.close()
    assert server.requests[0].headers["Authorization"] == "Bearer of the pod"


async def test_a_pod_without_a_mounted_account_is_told_so(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match=r"ca\.crt") as caught:
        await connect(environ=environ, service_account=tmp_path)
    assert "automountServiceAccountToken" in caught.value.hint


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


async def test_client_certificates_and_authority_data_are_used(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with wire(answering(NODE), certificates.serving(demand_client=True)) as server:
        cluster = {
            "server": server.url,
            "certificate-authority-data": encoded(certificates.authority),
        }
        user = {
            "client-certificate-data": encoded(certificates.client),
            "client-key-data": encoded(certificates.client_key),
        }
        client = await connect(kubeconfig(tmp_path / "k", cluster, user))
        assert await client.get(NODES, "n") == NODE
        await client.close()


async def test_an_unknown_authority_is_refused_unless_the_user_says_otherwise(
    certificates: Certificates, tmp_path: Path
) -> None:
    other = make_certificates(tmp_path / "other")
    async with wire(answering(NODE), certificates.serving()) as server:
        cluster = {"server": server.url, "certificate-authority": str(other.authority)}
        client = await connect(kubeconfig(tmp_path / "strict", cluster))
        with pytest.raises(ApiUnavailableError, match="certificate"):
            await client.get(NODES, "n")
        await client.close()
        open_to_all = {"server": server.url, "insecure-skip-tls-verify": True}
        client = await connect(kubeconfig(tmp_path / "open", open_to_all))
        assert await client.get(NODES, "n") == NODE
        await client.close()


async def test_a_certificate_for_another_host_is_refused(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with wire(answering(NODE), certificates.serving()) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        cluster = {"server": url, "certificate-authority": str(certificates.authority)}
        client = await connect(kubeconfig(tmp_path / "k", cluster))
        with pytest.raises(ApiUnavailableError, match="certificate"):
            await client.get(NODES, "n")
        await client.close()
        named = {**cluster, "tls-server-name": "127.0.0.1"}
        client = await connect(kubeconfig(tmp_path / "named", named))
        assert await client.get(NODES, "n") == NODE
        await client.close()


async def test_a_netrc_file_gives_no_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login anna password pass\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with wire(answering(NODE)) as server:
        client = await connect(kubeconfig(tmp_path / "k", {"server": server.url}))
        await client.get(NODES, "n")
        await client.close()
    assert "Authorization" not in server.requests[0].headers
