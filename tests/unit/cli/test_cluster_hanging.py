"""Commands that ask an API server which stops answering: each ends in time and says so."""

import asyncio
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoon.cli import exits, main
from dragoon.diagnose import archive
from dragoon.kube.port import CLAIMS, EVENTS, NODES
from tests.contract.kube.kubeconfigs import kubeconfig
from tests.contract.kube.wire import answering, wire
from tests.scenario.damage.cluster_world import ClusterWorld

Capture = pytest.CaptureFixture[str]

MANIFEST = str(Path(__file__).parents[3] / "docs/manifests/one-gpu.yaml")


ASKING = [
    ("status",),
    ("explain", "pod/train", "-n", "default"),
    ("simulate", "-f", MANIFEST),
    ("map",),
    ("gangs",),
    ("gangs", "show", "train", "-n", "default"),
    ("gangs", "make-room", "train", "-n", "default"),
]


@pytest.mark.parametrize("words", ASKING, ids=lambda words: "-".join(words[:2]))
async def test_a_server_that_stops_answering_is_given_up_after_the_timeout(
    words: tuple[str, ...], cluster: tuple[ClusterWorld, str], capsys: Capture
) -> None:
    world, kubeconfig = cluster
    silence = world.api.faults.hang(verb="list", times=None)
    arguments = [*words, "--kubeconfig", kubeconfig, "--timeout", "300ms"]
    try:
        assert await asyncio.to_thread(main.run, arguments) == exits.UNREACHABLE
    finally:
        silence.lift()
    told = capsys.readouterr()
    assert "error: no answer from http://127.0.0.1:" in told.err
    assert "within 0.3 s" in told.err
    assert "give more by --timeout" in told.err
    assert not told.out


async def test_check_tells_what_a_silent_server_kept_from_it_and_ends_with_3(
    cluster: tuple[ClusterWorld, str], capsys: Capture
) -> None:
    world, kubeconfig = cluster
    silence = world.api.faults.hang(times=None)
    arguments = ["check", "--category", "gang", "--kubeconfig", kubeconfig, "--timeout", "300ms"]
    try:
        assert await asyncio.to_thread(main.run, arguments) == exits.UNREACHABLE
    finally:
        silence.lift()
    told = capsys.readouterr().out
    assert "gang: not checked" in told
    assert "no answer from http://127.0.0.1:" in told
    assert "within 0.3 s" in told


async def test_dump_does_not_wait_for_a_silent_server_again_and_ends_with_3(
    cluster: tuple[ClusterWorld, str], tmp_path: Path, capsys: Capture
) -> None:
    world, kubeconfig = cluster
    file = tmp_path / "dump.tar.gz"
    nowhere = ("--kubelet-root", str(tmp_path / "none"), "--proc-root", str(tmp_path))
    silence = world.api.faults.hang(verb="list", times=None)
    arguments = ["dump", "-o", str(file), *nowhere, "--kubeconfig", kubeconfig]
    try:
        found = await asyncio.to_thread(main.run, [*arguments, "--timeout", "300ms"])
    finally:
        silence.lift()
    assert found == exits.UNREACHABLE
    told = capsys.readouterr().err
    assert "note: not collected: cluster: no answer from http://127.0.0.1:" in told
    for name in ("events", "cluster-checks"):
        assert f"note: not collected: {name}: not asked: http://127.0.0.1:" in told
    with tarfile.open(file) as tar:
        assert [Path(one).name for one in tar.getnames() if one.endswith(".json")] == ["dump.json"]


@pytest.fixture
def silent(tmp_path: Path) -> str:
    """A kubeconfig whose exec plugin never says anything."""
    plugin = tmp_path / "plugin"
    plugin.write_text("#!/bin/sh\nexec sleep 1000\n")
    plugin.chmod(0o700)
    version = "client.authentication.k8s.io/v1"
    user = {"exec": {"apiVersion": version, "command": str(plugin)}}
    return str(kubeconfig(tmp_path / "silent", {"server": "http://127.0.0.1:1"}, user))


@pytest.mark.parametrize("words", ASKING, ids=lambda words: "-".join(words[:2]))
def test_a_login_that_hangs_is_given_up_after_the_timeout(
    words: tuple[str, ...], silent: str, capsys: Capture
) -> None:
    arguments = [*words, "--kubeconfig", silent, "--timeout", "300ms"]
    assert main.run(arguments) == exits.UNREACHABLE
    told = capsys.readouterr()
    assert f"error: --kubeconfig: {silent}: no credentials within 0.3 s" in told.err
    assert not told.out


def test_check_tells_that_a_login_hangs_and_checks_the_rest(silent: str, capsys: Capture) -> None:
    arguments = ["check", "--category", "gang,host", "--kubeconfig", silent, "--timeout", "300ms"]
    main.run([*arguments, "--simulate", "dgx-h100"])
    told = capsys.readouterr().out
    assert f"gang: not checked: --kubeconfig: {silent}: no credentials within 0.3 s" in told
    assert any(line.startswith("host: ") for line in told.splitlines())


def test_dump_tells_that_a_login_hangs_and_collects_the_rest(
    silent: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "dump.tar.gz"
    nowhere = ("--kubelet-root", str(tmp_path / "none"), "--proc-root", str(tmp_path))
    arguments = ["dump", "-o", str(file), *nowhere, "--kubeconfig", silent, "--timeout", "300ms"]
    assert main.run(arguments) == exits.UNREACHABLE
    assert f"cluster: --kubeconfig: {silent}: no credentials within 0.3 s" in (
        capsys.readouterr().err
    )
    assert file.exists()


LONGER = ("500ms", "2s", "8s", "32s")
"""For a busy machine, on which what does answer takes long, too."""


NEED_NO_CLAIMS = frozenset(("API001", "API004", "GANG001"))


async def dumped(
    kubeconfig: str, folder: Path, capsys: Capture, will_do: Callable[[dict[str, Any]], bool]
) -> tuple[Path, dict[str, Any], list[str]]:
    """A dump of a cluster that keeps one list to itself, its files, and the notes about it."""
    nowhere = ("--kubelet-root", str(folder / "none"), "--proc-root", str(folder))
    for seconds in LONGER:
        file = folder / f"{seconds}.tar.gz"
        arguments = ["dump", "-o", str(file), *nowhere, "--kubeconfig", kubeconfig]
        code = await asyncio.to_thread(main.run, [*arguments, "--timeout", seconds])
        notes = [one for one in capsys.readouterr().err.splitlines() if one.startswith("note: ")]
        files = {name: json.loads(text) for name, text in archive.unpack(file).items()}
        only_one = len(notes) == 1 and "; " not in notes[0]
        if only_one and "cluster-checks.json" in files and will_do(files):
            break
    assert code == exits.FINE
    return file, files, notes


def not_made(files: dict[str, Any]) -> dict[str, str]:
    """The checks that were not made, and why."""
    checks = files["cluster-checks.json"]
    return {one["code"]: one["notChecked"] for one in checks if one["notChecked"]}


async def test_what_a_server_tells_is_dumped_though_it_keeps_one_list_to_itself(
    cluster: tuple[ClusterWorld, str], tmp_path: Path, capsys: Capture
) -> None:
    world, kubeconfig = cluster
    silence = world.api.faults.hang(verb="list", resource=NODES, times=None)
    try:
        _, files, (note,) = await dumped(
            kubeconfig, tmp_path, capsys, lambda files: len(not_made(files)) == 1
        )
    finally:
        silence.lift()
    assert note.startswith("note: not collected: cluster: nodes: no answer from http://127.0.0.1:")
    (kept,) = files["cluster/snapshot.json"]["missing"]
    assert kept.startswith("nodes: no answer from ")
    assert not_made(files) == {"API009": kept}
    assert [one["metadata"]["name"] for one in files["cluster/resourceclaims.json"]["items"]]
    assert files["cluster-events.json"] == []


async def test_a_dump_without_a_list_that_every_answer_needs_is_kept_but_answers_nothing(
    cluster: tuple[ClusterWorld, str], tmp_path: Path, capsys: Capture
) -> None:
    world, kubeconfig = cluster
    silence = world.api.faults.hang(verb="list", resource=CLAIMS, times=None)
    try:
        file, files, (note,) = await dumped(
            kubeconfig, tmp_path, capsys, lambda files: not NEED_NO_CLAIMS & set(not_made(files))
        )
    finally:
        silence.lift()
    assert note.startswith("note: not collected: cluster: resourceclaims: no answer from ")
    assert len(files["cluster/nodes.json"]["items"]) == 2
    assert files["cluster-events.json"] == []
    assert not NEED_NO_CLAIMS & set(not_made(files))
    assert not {"cluster/snapshot.json", "cluster/resourceclaims.json"} & set(files)
    assert await asyncio.to_thread(main.run, ["status", "--snapshot", str(file)]) == exits.USAGE
    assert "found 0 objects of kind Snapshot" in capsys.readouterr().err


async def test_events_that_do_not_come_cost_no_check(
    cluster: tuple[ClusterWorld, str], tmp_path: Path, capsys: Capture
) -> None:
    world, kubeconfig = cluster
    silence = world.api.faults.hang(verb="list", resource=EVENTS, times=None)
    try:
        _, files, (note,) = await dumped(
            kubeconfig, tmp_path, capsys, lambda files: not not_made(files)
        )
    finally:
        silence.lift()
    assert note.startswith("note: not collected: events: not done within ")
    assert not_made(files) == {}
    assert files["cluster/snapshot.json"]["missing"] == []


async def test_a_node_tells_of_itself_when_the_api_server_stops_answering(
    cluster: tuple[ClusterWorld, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    world, kubeconfig = cluster
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    here = (
        *("--simulate", "dgx-h100", "--node-name", "n1", "--kubelet-root", str(tmp_path)),
        *("--state-dir", str(tmp_path / "state"), "--cdi-root", str(tmp_path / "cdi")),
    )
    silence = world.api.faults.hang(verb="list", times=None)
    try:
        for seconds in LONGER:
            await asyncio.to_thread(main.run, ["status", "node/n1", *here, "--timeout", seconds])
            told = capsys.readouterr()
            if told.out and "no answer" not in told.out:
                break
    finally:
        silence.lift()
    assert told.err.startswith("note: this node alone: no answer from http://127.0.0.1:")
    assert told.out.startswith("node n1\n")
    assert sum(line.startswith("gpu-") for line in told.out.splitlines()) == 8


def test_check_of_a_server_that_is_not_there_ends_with_3(tmp_path: Path, capsys: Capture) -> None:
    nowhere = str(kubeconfig(tmp_path / "nowhere", {"server": "http://127.0.0.1:1"}))
    arguments = ["check", "--category", "api,gang", "--kubeconfig", nowhere]
    assert main.run(arguments) == exits.UNREACHABLE
    told = capsys.readouterr().out
    assert "api: not checked" in told
    assert "fine" not in told


FORBIDDEN = 'x is forbidden: User "u" cannot list resource "x" in API group "" at the cluster scope'


@pytest.mark.parametrize(
    ("body", "status", "made"),
    [
        ({"kind": "Status", "message": "Unauthorized", "code": 401}, 401, {}),
        ({"kind": "Status", "message": FORBIDDEN, "code": 403}, 403, {"API012": "warning"}),
        ({"login": "needed"}, 200, {}),
    ],
    ids=["401", "403", "a proxy"],
)
async def test_check_that_was_told_nothing_ends_with_3(
    body: Any, status: int, made: dict[str, str], tmp_path: Path, capsys: Capture
) -> None:
    async with wire(answering(body, status=status)) as server:
        there = str(kubeconfig(tmp_path / "there", {"server": server.url}))
        arguments = ["check", "--category", "gang,api", "--kubeconfig", there, "-o", "json"]
        found = await asyncio.to_thread(main.run, arguments)
    items = json.loads(capsys.readouterr().out)["items"]
    assert {one["code"]: one["state"] for one in items if not one["notChecked"]} == made
    assert found == exits.UNREACHABLE
