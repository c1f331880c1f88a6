"""Use of shares in the status: only when it crosses 90 per cent, at most once in five minutes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.api.enforcement import Tier
from dragoon.gpu.model import PciAddress
from dragoon.kube.port import CLAIMS
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.status.outcome import Marked
from dragoon.prepare.status.pressure import QUIET_SECONDS, Told, Use, crossed, marks
from dragoon.prepare.status.watching import PAUSE_SECONDS, UsageWatch
from tests.unit.prepare.enforcement.regions import running
from tests.unit.prepare.scene import Scene
from tests.unit.prepare.sharing import GIB, PATHS, container, pod_with_claims, share, sharing_scene
from tests.unit.prepare.status.desk import desk

CARD, OTHER = PciAddress(0, 0x10, 0), PciAddress(0, 0x11, 0)


def use(used: int, limit: int = 100, *, card: PciAddress = CARD, name: str = "main") -> Use:
    return Use(card, name, limit, used)


@pytest.mark.parametrize(
    ("used", "limit", "high"), [(89, 100, False), (90, 100, True), (101, 100, True), (5, 0, False)]
)
def test_high_is_90_per_cent_of_a_limit_and_more(used: int, limit: int, high: bool) -> None:
    assert use(used, limit).is_high is high


def test_only_crossing_is_told() -> None:
    assert crossed([use(50)], Told(), 0) is None
    up = crossed([use(95)], Told(), 0)
    assert up == Told(frozenset({CARD}), 0)
    assert crossed([use(99)], up, QUIET_SECONDS) is None
    down = crossed([use(10)], up, QUIET_SECONDS)
    assert down == Told(frozenset(), QUIET_SECONDS)


def test_what_crosses_back_and_forth_is_told_once_in_five_minutes() -> None:
    told = Told(frozenset({CARD}), 0)
    assert crossed([use(10)], told, QUIET_SECONDS - 1) is None
    assert crossed([use(10)], told, QUIET_SECONDS) is not None


def test_another_card_of_the_claim_is_a_crossing_of_its_own() -> None:
    told = Told(frozenset({CARD}), 0)
    both = crossed([use(95), use(95, card=OTHER)], told, QUIET_SECONDS)
    assert both == Told(frozenset({CARD, OTHER}), QUIET_SECONDS)


@given(st.lists(st.tuples(st.floats(0, 60), st.booleans()), max_size=60))
@settings(max_examples=50)
def test_a_claim_is_never_told_twice_within_five_minutes(steps: list[tuple[float, bool]]) -> None:
    now, told, moments = 0.0, Told(), []
    for pause, high in steps:
        now += pause
        found = crossed([use(95 if high else 10)], told, now)
        if found is not None:
            assert found.cards != told.cards
            told = found
            moments.append(now)
    assert all(b - a >= QUIET_SECONDS for a, b in pairwise(moments))


def test_the_container_nearest_its_limit_is_named_for_each_card() -> None:
    uses = [
        use(92 << 20, 100 << 20, name="a"),
        use(99 << 20, 100 << 20, name="b"),
        use(10 << 20, 100 << 20, name="c", card=OTHER),
    ]
    told = crossed(uses, Told(), 0)
    assert told is not None
    (mark,) = marks(uses, told)
    assert (mark.card, mark.reason) == (CARD, "Above90Percent")
    assert mark.message == "container b used 99 MiB of 100 MiB when this was written"


@contextlib.asynccontextmanager
async def watched(scene: Scene) -> AsyncIterator[tuple[UsageWatch, list[Marked]]]:
    told: list[Marked] = []
    watch = UsageWatch(MemoryEffects(scene.disk), PATHS, told.append, clock=scene.clock)
    task = asyncio.create_task(watch.run())
    try:
        yield watch, told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_share_that_fills_up_stands_in_its_claim_and_goes_when_it_empties() -> None:
    scene = sharing_scene()
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    async with desk(scene, engine) as here:
        await engine.prepare(refs["a"])
        await here.settle()
        effects = MemoryEffects(scene.disk)
        file = region_file(PATHS, pod["metadata"]["uid"], "main")
        empty = scene.disk.files()[file]
        watch = UsageWatch(effects, PATHS, here.writer.observe, clock=scene.clock)

        effects.patch(file, 0, running(empty, 0, {0: 4 * GIB - 5}))
        await watch.look()
        await here.settle()
        (entry,) = await here.statuses(refs["a"])
        (told,) = (one for one in entry["conditions"] if one["type"] == "MemoryPressure")
        assert (told["status"], told["reason"]) == ("True", "Above90Percent")
        assert "container main used 4095 MiB of 4096 MiB" in told["message"]

        effects.patch(file, 0, empty)
        await watch.look()
        scene.clock.advance(QUIET_SECONDS)
        await watch.look()
        await here.settle()
        (entry,) = await here.statuses(refs["a"])
        assert {one["type"] for one in entry["conditions"]} == {"Ready", "Enforced"}


async def test_it_looks_every_half_minute_and_tells_a_claim_that_is_gone_nothing() -> None:
    scene = sharing_scene()
    engine = await scene.started()
    pod, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]})
    await engine.prepare(refs["a"])
    file = region_file(PATHS, pod["metadata"]["uid"], "main")
    full = running(scene.disk.files()[file], 0, {0: 4 * GIB})
    async with watched(scene) as (_, told):
        await asleep(scene)
        assert told == []
        MemoryEffects(scene.disk).patch(file, 0, full)
        scene.clock.advance(PAUSE_SECONDS)
        await asleep(scene)
        assert [one.claim for one in told] == [refs["a"]]
        await scene.api.delete(CLAIMS, refs["a"].name, namespace="team-a")
        await engine.unprepare(refs["a"])
        scene.clock.advance(QUIET_SECONDS)
        await asleep(scene)
        assert len(told) == 1


async def test_an_unlimited_share_has_no_pressure() -> None:
    scene = sharing_scene(Tier.NONE)
    engine = await scene.started()
    _, refs = await pod_with_claims(scene, "p", {"a": [share(0, "4Gi")]}, container("main", "a"))
    await engine.prepare(refs["a"])
    async with watched(scene) as (watch, told):
        await watch.look()
        assert told == []


async def asleep(scene: Scene) -> None:
    """Returns when the watch has looked and waits."""
    async with asyncio.timeout(60):
        while not scene.clock.sleeping:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
