"""A MIG claim when the process dies, or an effect fails, before any of its effects.

Whoever adds an effect adds a point here by itself: the life is played once to count them.
"""

import asyncio
import errno

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.errors import StateError
from dragoon.prepare.effects_memory import Crash, Faults, MemoryEffects
from dragoon.prepare.engine import Engine
from tests.unit.prepare.migging import H100, PATHS, MigScene
from tests.unit.prepare.scene import gpu

BEFORE = [("1g.10gb", 1), ("3g.40gb", 4)]


async def made(scene: MigScene) -> ClaimRef:
    """A claim of two parts of a card."""
    return await scene.claim(
        "c",
        scene.mig_result("3g.40gb", 4, request="big"),
        scene.mig_result("1g.10gb", 1, request="small"),
    )


async def life(engine: Engine, claim: ClaimRef) -> None:
    """It comes and goes."""
    await engine.prepare(claim)
    await engine.unprepare(claim)


def count() -> int:
    """How many effects a life has."""
    scene = MigScene(H100)
    effects = MemoryEffects(scene.disk)

    async def play() -> int:
        engine = await scene.started(effects)
        started = len(effects.performed)
        await life(engine, await made(scene))
        return len(effects.performed) - started

    return asyncio.run(play())


COUNT = count()


def test_a_life_has_the_effects_of_mode_and_instances() -> None:
    assert COUNT > 2 * (1 + 2) + 4  # mode and two instances, on and off; journal and files


@pytest.mark.parametrize("point", range(COUNT))
@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("crash", [False, True])
async def test_after_a_fault_before_any_effect_the_next_try_is_right(
    point: int, *, power_cut: bool, crash: bool
) -> None:
    scene = MigScene(H100)
    effects = MemoryEffects(scene.disk)
    engine = await scene.started(effects, wait_s=0.0)
    number = len(effects.performed) + point
    effects.faults = Faults(crash_at=number) if crash else Faults(failures={number: errno.EIO})
    claim = await made(scene)
    with pytest.raises(Crash if crash else StateError):
        await life(engine, claim)
    effects.kill()
    if power_cut:
        scene.disk.power_cut("boot-2", wiped=[PATHS.cdi_folder])

    engine = await scene.started(wait_s=0.0)
    answer = await engine.prepare(claim)
    assert [len(one.cdi_ids) for one in answer] == [1, 1]
    assert scene.there() == BEFORE
    assert all(one.is_whole for one in scene.card().instances)

    await engine.unprepare(claim)
    assert (scene.there(), scene.files) == ([], {})
    assert not scene.mig.cards[gpu(0).address].card.mode.enabled
