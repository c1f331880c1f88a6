"""Credentials from a program that the kubeconfig names: what it says, and when it says nothing."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from dragoon.errors import ApiForbiddenError, ApiUnavailableError, ConfigError
from dragoon.kube.connecting import connect
from dragoon.kube.exec_plugin import credentials
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NODES
from dragoon.kube.serving import EmbeddedApi
from tests.contract.kube.kubeconfigs import kubeconfig
from tests.contract.kube.waiting import becomes
from tests.contract.kube.wire import answering, wire

VERSION = "client.authentication.k8s.io/v1"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
HANG = "exec sleep 1000"


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


def says(status: str) -> str:
    answer = f'{{"apiVersion":"{VERSION}","kind":"ExecCredential","status":{status}}}'
    return f"cat <<END\n{answer}\nEND"


def user(command: Path | str, **more: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": VERSION, "command": str(command), **more}}


async def test_a_plugin_is_run_and_run_again_after_a_refusal(tmp_path: Path) -> None:
    token = tmp_path / "token"
    plugin = script(tmp_path / "plugin", says(f'{{"token":"$(cat {token})"}}'))
    token.write_text("first")
    embedded = EmbeddedApi(MemoryApi())
    await embedded.memory.create(NODES, NODE)
    await embedded.start()
    try:
        embedded.tokens = {"first"}
        client = await connect(kubeconfig(tmp_path / "k", {"server": embedded.url}, user(plugin)))
        assert await client.get(NODES, "n")
        token.write_text("second")
        embedded.tokens = {"second"}
        assert await client.get(NODES, "n")
        embedded.tokens = {"third"}
        script(plugin, "exit 7")
        with pytest.raises(ApiForbiddenError, match="plugin: ended with 7"):
            await client.get(NODES, "n")
        await client.close()
    finally:
        await embedded.stop()


async def test_a_plugin_gets_its_arguments_its_variables_and_what_is_asked_of_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "bin").mkdir()
    script(
        tmp_path / "bin" / "plugin",
        f'printf %s "$KUBERNETES_EXEC_INFO" >{tmp_path}/asked\n' + says('{"token":"$1-$WHO"}'),
    )
    named = user("bin/plugin", args=["a b"], env=[{"name": "WHO", "value": "me"}])
    async with wire(answering(NODE)) as server:
        client = await connect(kubeconfig(tmp_path / "k", {"server": server.url}, named))
        await client.get(NODES, "n")
        await client.close()
    assert server.requests[0].headers["Authorization"] == "Bearer a b-me"
    assert (tmp_path / "asked").read_text() == (
        f'{{"apiVersion": "{VERSION}", "kind": "ExecCredential", "spec": {{"interactive": false}}}}'
    )


async def test_a_plugin_of_nothing_is_none(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "k", {"server": "http://a"}, {"exec": None})
    await (await connect(path)).close()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("exit 3", "ended with 3"),
        ("echo secret", "printed no JSON"),
        ("printf '\\377'", "printed no JSON"),
        ("echo []", "printed no status of an ExecCredential"),
        (says("null"), "printed no status of an ExecCredential"),
        (says('{"secret": 1}'), "gave neither a token nor a certificate and its key"),
        (says('{"token": 7}'), "gave neither a token nor a certificate and its key"),
        (says("{}").replace("/v1", "/v1beta1"), "speaks 'client.authentication.k8s.io/v1beta1'"),
    ],
)
async def test_a_plugin_that_gives_no_credentials_is_a_config_error_without_what_it_printed(
    tmp_path: Path, text: str, told: str
) -> None:
    plugin = script(tmp_path / "plugin", text)
    path = kubeconfig(tmp_path / "k", {"server": "http://127.0.0.1:1"}, user(plugin))
    with pytest.raises(ConfigError) as caught:
        await connect(path)
    assert caught.value.message.startswith(f"--kubeconfig: {path}: exec plugin {plugin}: {told}")
    assert "secret" not in str(caught.value)


async def test_of_a_plugin_that_is_not_there_the_hint_of_its_owner_is_told(tmp_path: Path) -> None:
    named = user(tmp_path / "none", installHint="install it first")
    path = kubeconfig(tmp_path / "k", {"server": "http://127.0.0.1:1"}, named)
    with pytest.raises(ConfigError, match="cannot be run: No such file") as caught:
        await connect(path)
    assert caught.value.hint == "install it first"


async def test_a_plugin_that_hangs_is_waited_for_as_long_as_was_said(tmp_path: Path) -> None:
    plugin = script(tmp_path / "plugin", HANG)
    path = kubeconfig(tmp_path / "k", {"server": "http://127.0.0.1:1"}, user(plugin))
    with pytest.raises(ApiUnavailableError) as caught:
        await connect(path, patience=0.1)
    assert caught.value.message == f"--kubeconfig: {path}: no credentials within 0.1 s"
    assert "run that program by hand" in caught.value.hint


async def test_a_plugin_that_hangs_when_it_is_run_again_ends_the_request(tmp_path: Path) -> None:
    plugin = script(
        tmp_path / "plugin",
        f"if [ -e {tmp_path}/ran ]; then {HANG}; fi\ntouch {tmp_path}/ran\n"
        + says('{"token":"t"}'),
    )
    async with wire(answering({"kind": "Status"}, status=401)) as server:
        path = kubeconfig(tmp_path / "k", {"server": server.url}, user(plugin))
        for patience in (0.5, 2, 8, 32):  # On a busy machine the first run takes long, too.
            (tmp_path / "ran").unlink(missing_ok=True)
            with contextlib.suppress(ApiUnavailableError):
                client = await connect(path, patience=patience)
                break
        with pytest.raises(ApiUnavailableError, match=f"no credentials within {patience:g} s"):
            await client.get(NODES, "n")
        await client.close()


async def test_a_plugin_that_nobody_waits_for_any_more_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    plugin = script(tmp_path / "plugin", f"echo $$ >{pid}.new; mv {pid}.new {pid}; {HANG}")
    running = asyncio.create_task(credentials(user(plugin)["exec"], tmp_path))

    async def runs() -> bool:
        return pid.exists()

    async def has_ended() -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, 0)
            return False
        return True

    await becomes("the plugin runs", runs)
    number = int(pid.read_text())
    assert not await has_ended()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await becomes("the plugin has ended", has_ended)
