"""The fault campaign of `hack/chaos`: a short run of it, and that it finds bugs that are planted."""

import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from chaoscampaign import deeds, memory, points, truth, victim
from chaoscampaign.board import Board, Deed, Kind
from chaoscampaign.campaign import Call, Campaign, Tally
from chaoscampaign.node import Node
from chaoscampaign.workload import DRIVER, bystanders
from dragoon.api.slice_validation import check_pool
from dragoon.errors import StateError
from dragoon.kube.port import SLICES, Object
from dragoon.prepare.effects import HostEffects

ROOT = Path(__file__).parents[2]
LAST_LINE = re.compile(r"kills (\d+), faults (\d+), violations 0")
# An effect without its undo, a missing fsync, a missing fsync of a folder.
BUGS = ("remove", "sync", "sync_folder")


@pytest.mark.timeout(2700)
def test_five_hundred_kills_and_faults_violate_nothing() -> None:
    """Another seed every time; it stands in the first line of what a failure shows."""
    done = subprocess.run(
        [sys.executable, "-m", "chaoscampaign", "--kills", "500", "--real", "0.2"],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "driver", ROOT / "hack", ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[:100] + done.stdout[-5000:] + done.stderr
    found = LAST_LINE.fullmatch(done.stdout.splitlines()[-1])
    assert found is not None
    kills, faults = map(int, found.groups())
    assert kills + faults >= 500
    assert kills >= 50


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught_on_a_disk_in_memory(bug: str) -> None:
    said: list[str] = []
    tally = Tally()
    memory.run(7, 120, tally, said.append, left_out=bug)
    assert tally.violations > 0
    assert any(line.startswith("VIOLATION") for line in said)


@asynccontextmanager
async def campaign_on(bug: str = "") -> AsyncIterator[Campaign]:
    """A node with two running containers, and a real process that has the bug."""
    with tempfile.TemporaryDirectory(prefix="dchaos", dir="/tmp") as folder:
        node = Node(Path(folder), left_out=bug)
        rng = random.Random(1)  # noqa: S311 - the same faults again
        campaign = Campaign(node, rng, Tally(), lambda _: None)
        try:
            await node.open()
            await campaign.host(bystanders(node.hardware.read().machine.cards))
            yield campaign
        finally:
            await node.close()


async def test_a_real_process_survives_a_kill_and_a_power_cut_at_a_point() -> None:
    async with campaign_on() as campaign:
        wish = campaign.node.wishes["mig"]
        await deeds.kill_at(campaign, wish, Call.PREPARE, 6, Deed.KILL)
        await deeds.power_cut_at(campaign, wish, Call.UNPREPARE, 2)
        assert (campaign.tally.kills, campaign.tally.faults) == (1, 1)
        assert campaign.tally.violations == 0


@pytest.mark.parametrize("bug", BUGS)
async def test_a_planted_bug_is_caught_in_a_real_process(bug: str) -> None:
    async with campaign_on(bug) as campaign:
        await deeds.power_cut_at(campaign, campaign.node.wishes["whole"], Call.UNPREPARE, 0)
        assert campaign.tally.violations > 0


def slice_of(index: int, generation: int, counter: str) -> Object:
    """The first slice has the counters, the second one the device that takes of them."""
    taken = {"counterSet": "card", "counters": {counter: {"value": "1"}}}
    content: Object = {"sharedCounters": [{"name": "card", "counters": taken["counters"]}]}
    if index:
        content = {"devices": [{"name": "gpu", "consumesCounters": [taken]}]}
    pool = {"name": "node/gpu", "generation": generation, "resourceSliceCount": 2}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{index}"},
        "spec": {"driver": DRIVER, "nodeName": "node", "pool": pool, **content},
    }


async def test_a_pool_is_judged_when_it_is_written_as_a_whole(tmp_path: Path) -> None:
    """Between two writes its devices take counters that are not there, and no allocator looks."""
    node = Node(tmp_path)
    node.published = frozenset({"gpu"})
    for index in (0, 1):
        await node.memory.create(SLICES, slice_of(index, 1, "old"))
    first, second = await node.slices()
    await node.memory.replace(SLICES, slice_of(0, 2, "new") | {"metadata": first["metadata"]})
    assert check_pool(await node.slices())

    judging = asyncio.create_task(truth.invalid_in_api(node))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not judging.done()
    await node.memory.replace(SLICES, slice_of(1, 2, "new") | {"metadata": second["metadata"]})

    assert [*await judging] == []


def test_fewer_points_than_recorded_are_told_but_not_a_number_of_driver_calls() -> None:
    before = {"whole prepare effects": 3, "mig prepare driver_calls": 700}
    now = {
        ("whole", Call.PREPARE, Kind.EFFECTS): 2,
        ("mig", Call.PREPARE, Kind.DRIVER_CALLS): 600,
    }
    assert [*points.fallen(now, before)] == [
        "whole prepare effects: 2 fault points, recorded are 3 (--record)"
    ]
    assert [*points.fallen({}, before)] != []
    assert [*points.fallen({**now, ("whole", Call.PREPARE, Kind.EFFECTS): 3}, before)] == []


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board.fresh(tmp_path / "board")


def pointed(inner: object, board: Board, tmp_path: Path) -> Any:
    trace = victim.Trace(tmp_path / "trace")
    return victim.PointedEffects(inner, victim.READS, board[Kind.EFFECTS], trace)


class WithNewEffect(HostEffects):
    """What somebody may add to the port one day."""

    def brand_new(self) -> str:
        return "done"


def test_a_new_effect_is_a_new_point_by_construction(board: Board, tmp_path: Path) -> None:
    effects = pointed(WithNewEffect(), board, tmp_path)
    assert effects.brand_new() == "done"
    assert board[Kind.EFFECTS].passed == 1
    board[Kind.EFFECTS].arm(Deed.FAIL, code=28)
    with pytest.raises(StateError):
        effects.write(tmp_path / "file", b"whole", 0o600)
    assert (tmp_path / "file").read_bytes() == b"wh", "a full disk takes a part"


def test_looking_is_no_point(board: Board, tmp_path: Path) -> None:
    effects = pointed(HostEffects(), board, tmp_path)
    effects.names(tmp_path)
    effects.exists(tmp_path)
    assert board[Kind.EFFECTS].passed == 0


def test_from_an_armed_point_on_every_effect_fails_until_it_is_disarmed(
    board: Board, tmp_path: Path
) -> None:
    effects, channel = pointed(HostEffects(), board, tmp_path), board[Kind.EFFECTS]
    channel.arm(Deed.FAIL_ON, ahead=1, code=30)
    effects.make_folder(tmp_path / "a", 0o700)
    for _ in range(2):
        with pytest.raises(StateError, match="Read-only"):
            effects.make_folder(tmp_path / "b", 0o700)
    channel.disarm()
    effects.make_folder(tmp_path / "b", 0o700)
    assert channel.passed == 4
