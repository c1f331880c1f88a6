"""Commands that ask an API server which stops answering: each ends in time and says so."""

import asyncio
import tarfile
from pathlib import Path

import pytest

from dragoon.cli import exits, main
from tests.scenario.damage.cluster_world import ClusterWorld

Capture = pytest.CaptureFixture[str]

MANIFEST = str(Path(__file__).parents[3] / "docs/manifests/one-gpu.yaml")


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("explain", "pod/train", "-n", "default"),
        ("simulate", "-f", MANIFEST),
        ("map",),
        ("gangs",),
        ("gangs", "show", "train", "-n", "default"),
        ("gangs", "make-room", "train", "-n", "default"),
    ],
    ids=lambda words: "-".join(words[:2]),
)
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
    assert "note: not collected: cluster: not done within 0.3 s\n" in told
    for name in ("events", "cluster-checks"):
        assert f"note: not collected: {name}: not asked: http://127.0.0.1:" in told
    with tarfile.open(file) as tar:
        assert [Path(one).name for one in tar.getnames() if one.endswith(".json")] == ["dump.json"]
