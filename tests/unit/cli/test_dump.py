"""`dragoon dump`: what is in the file, what fails alone, what other commands make of it."""

import asyncio
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from dragoon.app.dumping import Got, Task, collect, without_values
from dragoon.cli import main
from dragoon.diagnose import archive
from dragoon.errors import ApiError, ApiForbiddenError, ApiUnavailableError, StateError
from dragoon.kube.port import EVENTS
from dragoon.prepare.effects import HostEffects
from tests.scenario.damage.cluster_world import ClusterWorld
from tests.unit.prepare.scene import Scene, result

Capture = pytest.CaptureFixture[str]


async def run(*arguments: str) -> int:
    return await asyncio.to_thread(main.run, arguments)


def read(file: Path) -> dict[str, Any]:
    with tarfile.open(file) as tar:
        return {
            one.name.partition("/")[2]: json.load(body)
            for one in tar
            if (body := tar.extractfile(one)) is not None
        }


def elsewhere(tmp_path: Path) -> tuple[str, ...]:
    """Options of a machine that is no node."""
    return ("--kubelet-root", str(tmp_path / "none"), "--proc-root", str(tmp_path))


async def test_a_cluster_is_dumped_and_read_by_every_command(
    cluster: tuple[ClusterWorld, str], tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "dump.tar.gz"
    options = ("--kubeconfig", cluster[1], *elsewhere(tmp_path))
    assert await run("dump", "-o", str(file), *options) == 0
    told = capsys.readouterr()
    assert told.out == f"{file}\n"
    assert told.err == f"next: dragoon status --snapshot {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    found = read(file)
    contents = found["dump.json"]
    assert (contents["kind"], contents["layout"]) == ("Dump", 1)
    assert [(one["name"], one["ok"]) for one in contents["tasks"]] == [
        ("cluster", True),
        ("events", True),
        ("cluster-checks", True),
    ]
    assert any("environment" in one for one in contents["redacted"])
    assert found["cluster/snapshot.json"]["kubernetes"] == "v1.37.0-dragoon-memory"

    saved = ("--snapshot", str(file))
    assert await run("status", *saved) == 0
    assert await run("check", *saved, "--category", "api,state,gang") == 0
    assert await run("explain", "claim/has", *saved) == 0
    assert await run("devices", "node/n1", *saved) == 0
    assert sum("gpu-" in line for line in capsys.readouterr().out.splitlines()) >= 8
    manifest = tmp_path / "m.yaml"
    manifest.write_text(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: x}\nspec: {devices: "
        "{requests: [{name: g, exactly: {deviceClassName: sim.dragoon.dev}}]}}\n"
    )
    assert await run("simulate", "-f", str(manifest), *saved) == 0
    assert await run("map", *saved, "-o", "json") == 0


async def test_a_task_that_fails_is_told_and_the_others_are_there(
    cluster: tuple[ClusterWorld, str], tmp_path: Path, capsys: Capture
) -> None:
    world, kubeconfig = cluster
    world.api.faults.fail(
        times=None, resource=EVENTS, error=lambda: ApiForbiddenError("no events for you")
    )
    file = tmp_path / "dump.tar.gz"
    options = ("--kubeconfig", kubeconfig, *elsewhere(tmp_path))
    assert await run("dump", "-o", str(file), *options) == 0
    assert "note: not collected: events: " in capsys.readouterr().err
    found = read(file)
    errors = {one["name"]: one["error"] for one in found["dump.json"]["tasks"]}
    assert "no events for you" in errors["events"]
    assert errors["cluster"] == ""
    assert "cluster-events.json" not in found


async def test_a_node_is_dumped_without_a_cluster_and_shows_how_it_stands(
    tmp_path: Path, capsys: Capture
) -> None:
    scene = Scene(root=tmp_path)
    engine = await scene.started(HostEffects())
    await engine.prepare(await scene.claim("c", result(0)))
    file = tmp_path / "dump.tar.gz"
    options = (
        *("--local", "--simulate", "dgx-h100", "--node-name", "n1"),
        *("--state-dir", str(tmp_path / "state"), "--cdi-root", str(tmp_path / "cdi")),
        *("--kubelet-root", str(tmp_path)),
    )
    assert await run("dump", "-o", str(file), *options) == 0
    found = read(file)
    assert [one["name"] for one in found["node/journal.json"]["entries"]] == ["c"]
    (spec,) = found["node/cdi.json"]
    assert spec["state"] == "as written"
    assert not any("=" in one for one in _variables(spec["spec"]))
    assert {one["code"] for one in found["node/checks.json"]} >= {"HOST001", "STATE003"}
    capsys.readouterr()
    await run("status", "node/n1", "--snapshot", str(file))
    assert sum(line.startswith("gpu-") for line in capsys.readouterr().out.splitlines()) == 8


def _variables(spec: Any) -> list[str]:
    if isinstance(spec, list):
        return [found for one in spec for found in _variables(one)]
    if not isinstance(spec, dict):
        return []
    here = spec.get("env", [])
    return [*here, *(found for one in spec.values() for found in _variables(one))]


def test_values_of_variables_and_arguments_of_hooks_are_left_out() -> None:
    spec = {
        "containerEdits": {"env": ["TOKEN=secret", "EMPTY"]},
        "devices": [{"hooks": [{"path": "/bin/x", "args": ["x", "secret"]}]}],
    }
    assert without_values(spec) == {
        "containerEdits": {"env": ["TOKEN", "EMPTY"]},
        "devices": [{"hooks": [{"path": "/bin/x"}]}],
    }


async def test_every_task_fails_alone_whatever_happens() -> None:
    async def fine() -> Got:
        return Got({"a.json": 1})

    async def half() -> Got:
        return Got({"b.json": 1}, ("one half: gone", "the other: too"))

    async def refused() -> Got:
        raise StateError("the disk is gone")

    async def broken() -> Got:
        raise ZeroDivisionError("oops")

    async def hangs() -> Got:
        await asyncio.Event().wait()
        return Got({})

    tasks = [
        Task("refused", refused),
        Task("broken", broken),
        Task("hangs", hangs),
        Task("half", half),
        Task("fine", fine),
    ]
    done = await collect(tasks, seconds=0.05)
    assert [one.error for one in done] == [
        "the disk is gone",
        "internal fault: ZeroDivisionError: oops",
        "not done within 0.05 s",
        "one half: gone; the other: too",
        "",
    ]
    assert [one.files for one in done[-2:]] == [{"b.json": 1}, {"a.json": 1}]


async def test_only_a_server_that_never_gave_an_answer_is_not_asked_again() -> None:
    asked: list[str] = []

    def task(name: str, server: str, error: ApiError | None = None) -> Task:
        async def collect_it() -> Got:
            asked.append(name)
            if error is not None:
                raise error
            return Got({name: 1})

        return Task(name, collect_it, server)

    done = await collect(
        [
            task("refused", "a", ApiForbiddenError("no", status=403)),
            task("overloaded", "a", ApiUnavailableError("later", status=503)),
            task("silent for once", "a", ApiUnavailableError("no answer")),
            task("after", "a"),
            task("silent", "b", ApiUnavailableError("no answer")),
            task("not asked", "b"),
            task("here", "", ApiUnavailableError("no answer")),
            task("here too", ""),
        ]
    )
    assert asked == [
        *("refused", "overloaded", "silent for once", "after"),
        *("silent", "here", "here too"),
    ]
    errors = {one.name: one.error for one in done}
    assert errors["not asked"] == "not asked: b gave no answer before"


def test_where_nothing_can_be_collected_it_ends_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    file = tmp_path / "dump.tar.gz"
    assert main.run(["dump", "-o", str(file), *elsewhere(tmp_path)]) == 3
    assert "note: not collected: cluster: no API server is configured" in capsys.readouterr().err
    assert read(file)["dump.json"]["missing"]


def test_a_file_is_never_overwritten(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine"
    file.write_text("x")
    assert main.run(["dump", "-o", str(file), "--local", "--simulate", "dgx-h100"]) == 2
    assert "allowed is the name of a new one" in capsys.readouterr().err
    assert file.read_text() == "x"


@pytest.mark.parametrize("name", ["nowhere/x", "mine/x"])
def test_where_it_cannot_be_written_nothing_is_collected(
    tmp_path: Path, capsys: Capture, name: str
) -> None:
    (tmp_path / "mine").write_text("x")
    file = str(tmp_path / name)
    assert main.run(["dump", "-o", file, "--local", "--simulate", "dgx-h100"]) == 2
    assert f"--output: found {file}, allowed is the name of a new file" in capsys.readouterr().err


def test_it_goes_through_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoon", "dump", "-o", "-", "--local"]
    found = subprocess.run(
        [*command, "--simulate", "dgx-h100", "--kubelet-root", str(tmp_path)],
        capture_output=True,
        check=True,
        timeout=300,
    )
    file = tmp_path / "piped.tar.gz"
    file.write_bytes(found.stdout)
    assert read(file)["dump.json"]["kind"] == "Dump"


def test_a_dump_from_a_newer_version_is_refused_with_2(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "new.tar.gz"
    file.write_bytes(archive.pack({}, {"layout": 99, "dragoon": "9.1.0"}, created=0))
    for command in (["status"], ["explain", "pod/p"], ["check"], ["devices"]):
        assert main.run([*command, "--snapshot", str(file)]) == 2
        told = capsys.readouterr().err
        assert "of layout 99, written by Dragoon 9.1.0" in told
