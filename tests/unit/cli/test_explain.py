"""`dragoon explain`, `why` and `simulate`: live over HTTP, saved, output, exit codes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from dragoon.cli import main
from dragoon.diagnose import saving
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, CLASSES, NODES, PODS, SLICES
from dragoon.kube.serving import EmbeddedApi
from tests.unit.diagnose.cases import GPU_CLASS, exactly, pod, slice_
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot, wanting

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    known = snapshot(
        slice_(*gpus(2)), node(), holding("has", "gpu-0"), wanting(exactly(count=2), name="want")
    )
    saving.save(known, tmp_path / "saved")
    return tmp_path / "saved"


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump(wanting(exactly(), name="new")))
    return file


@contextlib.asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[MemoryApi, Path]]:
    """A cluster behind HTTP with one waiting pod, and the kubeconfig for it."""
    api = EmbeddedApi(MemoryApi())
    await api.start()
    try:
        memory = api.memory
        await memory.create(CLASSES, GPU_CLASS)
        await memory.create(SLICES, slice_(*gpus(2)))
        await memory.create(NODES, node())
        await memory.create(CLAIMS, wanting(exactly(count=3)))
        await memory.create(
            PODS, pod([{"name": "g", "resourceClaimName": "want"}], [{"name": "g"}])
        )
        yield memory, api.write_kubeconfig(folder / "kubeconfig")
    finally:
        await api.stop()


async def run(*arguments: str) -> int:
    """The command line in a thread of its own: it has an event loop of its own."""
    return await asyncio.to_thread(main.run, arguments)


@pytest.mark.parametrize("name", ["explain", "why"])
@pytest.mark.parametrize("what", ["pod/p", "claim/want"])
async def test_a_live_pod_is_explained_and_nothing_is_written(
    tmp_path: Path, capsys: Capture, name: str, what: str
) -> None:
    async with cluster(tmp_path) as (memory, kubeconfig):
        before = memory.resource_version
        assert await run(name, what, "--kubeconfig", str(kubeconfig)) == 1
        assert memory.resource_version == before
        assert {call.verb for call in memory.faults.calls[5:]} == {"list"}
    told = capsys.readouterr().out
    assert "needs 3 devices" in told
    assert "2 instead of 3" in told


async def test_a_live_cluster_is_simulated_and_nothing_is_written(
    tmp_path: Path, manifest: Path, capsys: Capture
) -> None:
    async with cluster(tmp_path) as (memory, kubeconfig):
        before = memory.resource_version
        arguments = ("simulate", "-f", str(manifest), "--kubeconfig", str(kubeconfig))
        assert await run(*arguments) == 0
        assert memory.resource_version == before
    assert "ResourceClaim default/new" in capsys.readouterr().out


async def test_what_was_looked_at_is_saved_and_answers_the_same(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "sent"
    async with cluster(tmp_path) as (_, kubeconfig):
        live = ("explain", "pod/p", "-o", "json", "--kubeconfig", str(kubeconfig))
        assert await run(*live, "--save", str(folder)) == 1
    first = json.loads(capsys.readouterr().out)
    assert main.run(["explain", "pod/p", "-o", "json", "--snapshot", str(folder)]) == 1
    assert json.loads(capsys.readouterr().out) == first


def test_a_cluster_that_does_not_answer_ends_with_3(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    assert main.run(["explain", "pod/p", "--kubeconfig", str(kubeconfig)]) == 3


def test_an_allocated_claim_ends_with_0(saved: Path, capsys: Capture) -> None:
    assert main.run(["explain", "claim/has", "--snapshot", str(saved)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("ResourceClaim default/has: has its devices\n")
    assert "gpu-0, NVIDIA H100 80GB HBM3" in told
    assert "on node n" in told


def test_a_waiting_claim_ends_with_1_and_says_what_would_help(saved: Path, capsys: Capture) -> None:
    assert main.run(["explain", "claim/want", "--snapshot", str(saved)]) == 1
    told = capsys.readouterr().out
    assert "ResourceClaim default/want: waits\n" in told
    assert "1. claim default/want, spec.devices.requests[0].exactly.count: 1 instead of 2" in told
    assert "claim default/has gone" in told


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_is_versioned(saved: Path, manifest: Path, capsys: Capture, form: str) -> None:
    main.run(["explain", "claim/want", "--snapshot", str(saved), "-o", form])
    explained = yaml.safe_load(capsys.readouterr().out)
    main.run(["simulate", "-f", str(manifest), "--snapshot", str(saved), "-o", form])
    simulated = yaml.safe_load(capsys.readouterr().out)
    assert [(one["apiVersion"], one["kind"]) for one in (explained, simulated)] == [
        ("diagnose.dragoon.dev/v1", "Explanation"),
        ("diagnose.dragoon.dev/v1", "Simulation"),
    ]


def test_simulate_ends_with_1_where_something_does_not_fit(
    saved: Path, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(
        yaml.safe_dump_all(
            [wanting(exactly(), name="fits"), wanting(exactly(count=9), name="never")]
        )
    )
    assert main.run(["simulate", "-f", str(file), "--snapshot", str(saved)]) == 1
    told = capsys.readouterr().out
    header, *rows = told.splitlines()[:3]
    assert header.split() == ["OBJECT", "ROLE", "VERDICT", "PLACED", "NODES"]
    assert [row.split()[3] for row in rows] == ["place", "never"]
    assert "what would help" in told


@pytest.mark.parametrize("broken", ["a: [", "not: kubernetes"])
def test_simulate_ends_with_1_where_a_document_cannot_be_understood(
    saved: Path, tmp_path: Path, capsys: Capture, broken: str
) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(f"{yaml.safe_dump(wanting(exactly()))}---\n{broken}\n")
    assert main.run(["simulate", "-f", str(file), "--snapshot", str(saved)]) == 1
    told = capsys.readouterr().err
    assert f"note: {file}:" in told
    assert told.endswith(f"next: dragoon lint -f {file} --snapshot {saved}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "want"],
        ["explain", "node/n"],
        ["explain", "claim/"],
        ["explain", "claim/wnat"],
        ["explain", "claim/want", "-n", "team-a"],
        ["simulate", "-f", "/nowhere"],
    ],
)
def test_wrong_usage_and_names_end_with_2(saved: Path, arguments: list[str]) -> None:
    assert main.run([*arguments, "--snapshot", str(saved)]) == 2


def test_a_snapshot_that_is_none_ends_with_2(tmp_path: Path, capsys: Capture) -> None:
    assert main.run(["explain", "claim/x", "--snapshot", str(tmp_path)]) == 2
    assert "found no file" in capsys.readouterr().err
