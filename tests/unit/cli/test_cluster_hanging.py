"""Commands that ask an API server which stops answering: each ends in time and says so."""

import asyncio
from pathlib import Path

import pytest

from dragoon.cli import exits, main
from tests.scenario.damage.cluster_world import ClusterWorld

Capture = pytest.CaptureFixture[str]

MANIFEST = str(Path(__file__).parents[3] / "docs/manifests/one-gpu.yaml")


@pytest.mark.parametrize(
    "words",
    [
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
