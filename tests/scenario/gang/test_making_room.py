"""Who could make room for a gang: told by its status, printed and evicted by the command."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoon.cli import main
from dragoon.errors import ApiUnavailableError
from dragoon.kube.port import PODS
from dragoon.kube.serving import EmbeddedApi
from tests.scenario.gang.bed import SPACE, Bed

Capture = pytest.CaptureFixture[str]


@contextlib.asynccontextmanager
async def served(bed: Bed, folder: Path) -> AsyncIterator[str]:
    """The cluster over HTTP; the path of a kubeconfig."""
    api = EmbeddedApi(bed.api)
    await api.start()
    try:
        yield str(api.write_kubeconfig(folder / "kubeconfig"))
    finally:
        await api.stop()


async def make_room(kubeconfig: str, *more: str) -> int:
    arguments = ("gangs", "make-room", "high", "-n", SPACE, "--kubeconfig", kubeconfig, *more)
    return await asyncio.to_thread(main.run, arguments)


async def crowded(bed: Bed, *, priority: int = 10) -> tuple[str, ...]:
    """Two nodes full of two gangs of priority 0, and one that waits; what its status explains."""
    async with bed.controller():
        await bed.job("large", 4)
        await bed.phase("large", "Running")
        await bed.job("small", 2, template="pair")
        await bed.phase("small", "Running")
        await bed.job("high", 2, template="pair", priority=priority)
        return (await bed.waits("high")).status.explanation


async def test_the_cheapest_holders_of_lower_priority_are_told_printed_and_evicted(
    tmp_path: Path, capsys: Capture
) -> None:
    line = "it fits when 2 pods of lower priority (at most 0) leave"
    who = f"gang {SPACE}/small (priority 0, 2 pods)"
    async with Bed().up() as bed, served(bed, tmp_path) as kubeconfig:
        assert {line, who} <= set(await crowded(bed))
        capsys.readouterr()
        assert await make_room(kubeconfig) == 0
        assert capsys.readouterr().out == f"gang {SPACE}/high: {line}\n  {who}\n"
        assert len(await bed.bound("small")) == 2
        assert await make_room(kubeconfig, "--evict", "-o", "json") == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["state"], found["message"]) == ("possible", line)
        assert [one["refusal"] for one in found["evictions"]] == ["", ""]
        async with bed.controller():
            await bed.phase("high", "Running")
        assert len(await bed.bound("large")) == 4
        capsys.readouterr()
        assert await make_room(kubeconfig) == 0
        assert "it is placed already" in capsys.readouterr().out


async def test_a_disruption_budget_that_is_used_up_is_told_of_each_pod(
    tmp_path: Path, capsys: Capture
) -> None:
    async with Bed().up() as bed, served(bed, tmp_path) as kubeconfig:
        await crowded(bed)
        bed.api.faults.fail(
            times=1,
            verb="create",
            resource=PODS,
            when=lambda call: call.subresource == "eviction",
            error=lambda: ApiUnavailableError("the disruption budget needs 2", status=429),
        )
        assert await make_room(kubeconfig, "--evict") == 1
        out = capsys.readouterr().out
        assert f"{SPACE}/small-0: " in out
        assert "the disruption budget needs 2" in out
        assert out.index("evicted") < out.index(f"{SPACE}/small-1") < out.index("refused")


@pytest.mark.parametrize("priority", [0, -5])
async def test_nobody_of_the_same_or_higher_priority_is_named(
    priority: int, tmp_path: Path, capsys: Capture
) -> None:
    async with Bed().up() as bed, served(bed, tmp_path) as kubeconfig:
        explanation = await crowded(bed, priority=priority)
        assert not any("of lower priority" in line for line in explanation)
        capsys.readouterr()
        assert await make_room(kubeconfig, "--evict") == 1
        out = capsys.readouterr().out
        assert f"no place for it even if all of lower priority than {priority} left" in out
        assert len(await bed.bound("large")) + len(await bed.bound("small")) == 6


async def test_a_gang_that_is_not_there_or_not_complete_says_so(
    tmp_path: Path, capsys: Capture
) -> None:
    async with Bed().up() as bed, served(bed, tmp_path) as kubeconfig:
        assert await make_room(kubeconfig) == 2
        assert f"gang {SPACE}/high: not found" in capsys.readouterr().err
        async with bed.controller():
            await bed.pod("high-0", gang="high", size="2")
            await bed.phase("high", "Gathering")
        capsys.readouterr()
        assert await make_room(kubeconfig) == 1
        assert "it is not complete" in capsys.readouterr().out
