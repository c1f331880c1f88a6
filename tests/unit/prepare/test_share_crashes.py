"""Shares of every tier when the process dies before any effect, or the power goes.

Whoever adds an effect adds a point here by itself: the life is played once to count them.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.opaque_config import TimeSlice
from dragoon.prepare.effects_memory import Crash, Faults, MemoryEffects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.engine import Engine
from dragoon.prepare.injection import inject
from dragoon.prepare.port import PreparedDevice
from tests.unit.prepare.scene import Scene, gpu, result
from tests.unit.prepare.sharing import (
    GIB,
    PATHS,
    asks,
    pod_with_claims,
    share,
    sharing_scene,
)

Step = Callable[[Engine], Coroutine[Any, Any, None]]


@dataclass(eq=False)
class Life:
    """Four claims: two of the tier hami in one container, one of cgroup, one of none."""

    scene: Scene
    claims: dict[str, ClaimRef]
    pods: dict[str, str]
    answers: dict[str, tuple[PreparedDevice, ...]]

    @classmethod
    async def begin(cls) -> "Life":
        scene = sharing_scene(Tier.CGROUP, Tier.HAMI, Tier.NONE, interval=TimeSlice.LONG)
        claims: dict[str, ClaimRef] = {}
        pods: dict[str, str] = {}
        for name, spec in {
            "hami": {"a": [share(0, "4Gi")], "b": [share(1, "2Gi", cores="10"), result(2)]},
            "cgroup": {"c": [share(0, "6Gi", share_id="s-2")]},
            "none": {"d": [share(0, "1Gi", share_id="s-3")]},
        }.items():
            config = {claim: [asks(name)] for claim in spec}
            pod, refs = await pod_with_claims(scene, name, spec, config=config)
            pods[name] = pod["metadata"]["uid"]
            claims |= refs
        life = cls(scene, claims, pods, {})
        life.make_cgroups()
        return life

    def make_cgroups(self) -> None:
        """As the kubelet does, before it asks for devices."""
        self.scene.disk.cards.cgroups.add(PATHS.pod_cgroups(self.pods["cgroup"])[2])

    def steps(self) -> list[Step]:
        """Prepares everything, then takes everything back."""
        names = sorted(self.claims)
        works = (self.prepare, self.unprepare)
        return [partial(work, name) for work in works for name in names]

    async def prepare(self, name: str, engine: Engine) -> None:
        answer = await engine.prepare(self.claims[name])
        assert answer == self.answers.setdefault(name, answer)

    async def unprepare(self, name: str, engine: Engine) -> None:
        self.answers.pop(name, None)
        await engine.unprepare(self.claims[name])

    def check_answered(self) -> None:
        """Every container that may live has its limits."""
        if {"a", "b"} & self.answers.keys():
            data = self.scene.disk.files()[region_file(PATHS, self.pods["hami"], "main")]
            found = [(one.uuid, one.limit, one.cores) for one in region.read(data)]
            assert found[:2] == [(gpu(0).uuid, 4 * GIB, 100), (gpu(1).uuid, 2 * GIB, 10)]
        if "c" in self.answers:
            assert list(self.scene.disk.cards.caps.values()) == [6 * GIB]
        if "d" in self.answers:
            assert self.scene.disk.cards.time_slices == {gpu(0).uuid: TimeSlice.LONG}
        documents = [
            data
            for path, data in self.scene.disk.files().items()
            if path.parent == PATHS.cdi_folder
        ]
        for answer in self.answers.values():
            inject(documents, [cdi_id for one in answer for cdi_id in one.cdi_ids])

    def check_nothing_left(self) -> None:
        cards = self.scene.disk.cards
        assert self.scene.files == {}
        assert MemoryEffects(self.scene.disk).names(PATHS.region_folder) == ()
        assert (cards.caps, cards.time_slices) == ({}, {})


async def played() -> tuple[str, ...]:
    """The effects of a whole life, in order."""
    life = await Life.begin()
    effects = MemoryEffects(life.scene.disk)
    engine = await life.scene.started(effects)
    begun = len(effects.performed)
    for step in life.steps():
        await step(engine)
        life.check_answered()
    life.check_nothing_left()
    return tuple(effects.performed[begun:])


EFFECTS = asyncio.run(played())


@pytest.mark.parametrize("death", ["process", "power", "lucky power"])
@pytest.mark.parametrize("point", range(len(EFFECTS)))
async def test_whatever_dies_before_any_effect_no_limit_is_lost_and_nothing_leaks(
    point: int, death: str
) -> None:
    life = await Life.begin()
    effects = MemoryEffects(life.scene.disk)
    engine = await life.scene.started(effects)
    effects.faults = Faults(crash_at=len(effects.performed) + point)
    steps = life.steps()
    done = await until_death(engine, steps)
    if death != "process":
        luck = random.Random(point) if death == "lucky power" else None  # noqa: S311 - a fault
        life.scene.disk.power_cut("boot-2", wiped=[PATHS.cdi_folder], luck=luck)
        life.make_cgroups()
        life.answers.clear()
        done = 0 if done < len(life.claims) else done

    engine = await life.scene.started()
    life.check_answered()
    for step in steps[done:]:
        await step(engine)
        life.check_answered()
    for claim in life.claims.values():  # the power may have brought an entry back
        await engine.unprepare(claim)
    life.check_nothing_left()


async def until_death(engine: Engine, steps: list[Step]) -> int:
    """How many steps were done before it."""
    for number, step in enumerate(steps):
        try:
            await step(engine)
        except Crash:
            return number
    raise AssertionError("nothing died")


def test_every_kind_of_effect_that_shares_need_is_a_point_to_die_at() -> None:
    kinds = {done.rpartition(" ")[0] for done in EFFECTS}
    assert kinds == {
        "make folder",
        "set the mode of",
        "write",
        "sync",
        "rename",
        "sync folder",
        "remove",
        "cap",
        "set the Long time slice of",
        "set the Default time slice of",
    }
