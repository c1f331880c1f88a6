"""Cards that refused a claim are remembered until what was in the way is gone."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.api.forms import Form
from dragoon.errors import DragoonError
from dragoon.gpu.faults import CardInUseError, PlacementTakenError, ResetRequiredError
from dragoon.gpu.mig import GpuProcess
from dragoon.gpu.model import PciAddress
from dragoon.gpu.obstacles import UNLISTED_SECONDS, Obstacle
from dragoon.prepare.blocking import LOOK_SECONDS, Blocking
from dragoon.prepare.engine import Engine
from tests.unit.prepare.migging import A100, H100, MigScene
from tests.unit.prepare.scene import gpu, until

PLAIN, MIG = frozenset({Form.WHOLE, Form.SHARED}), frozenset({Form.MIG})
PYTHON = GpuProcess(4711, name="python")


class Watch:
    """An engine that does not wait, and what was published because of its refusals."""

    def __init__(self, scene: MigScene, engine: Engine) -> None:
        self.scene = scene
        self.engine = engine
        self.published: list[tuple[Obstacle, ...]] = []
        self.looks = 0
        self.blocking = Blocking(
            scene.mig, scene.mig, self.published.append, self._look, clock=scene.clock
        )

    def _look(self) -> None:
        self.looks += 1

    async def refused(self, claim: ClaimRef) -> DragoonError:
        with pytest.raises(DragoonError) as caught:
            await self.engine.prepare(claim)
        self.blocking.observe(self.scene.events[-1])
        return caught.value

    async def blocked(self) -> Obstacle:
        """The one obstacle, as soon as there is one."""
        await until(lambda: bool(self.published and self.published[-1]))
        (found,) = self.published[-1]
        return found

    async def free(self) -> None:
        """Returns when no obstacle is left."""
        await until(lambda: bool(self.published and not self.published[-1]))

    async def later(self, seconds: float = LOOK_SECONDS) -> None:
        """Lets that time pass, and returns when it has looked and waits again."""
        await until(lambda: self.scene.clock.sleeping > 0)
        self.scene.clock.advance(seconds)
        await until(lambda: self.scene.clock.sleeping > 0)


@contextlib.asynccontextmanager
async def watching(scene: MigScene) -> AsyncIterator[Watch]:
    found = Watch(scene, await scene.started(wait_s=0.0))
    task = asyncio.create_task(found.blocking.run())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_client_in_the_way_of_mig_blocks_that_form_until_it_has_ended() -> None:
    scene = MigScene(H100)
    scene.card().processes = (PYTHON,)
    claim = await scene.claim("c", scene.mig_result("3g.40gb", 4))
    async with watching(scene) as here:
        error = await here.refused(claim)
        assert isinstance(error, CardInUseError)
        obstacle = await here.blocked()
        assert (obstacle.card, obstacle.forms) == (gpu(0).address, MIG)
        assert (obstacle.code, obstacle.who) == ("CardInUse", "python (pid 4711)")
        for _ in range(3):
            await here.later()
        assert here.published == [(obstacle,)]
        scene.card().processes = ()
        await here.later()
        await here.free()
        assert len(here.published) == 2
        await here.engine.prepare(claim)


async def test_instances_of_somebody_else_block_the_whole_card() -> None:
    scene = MigScene(H100)
    theirs = scene.make("3g.40gb", 4)
    async with watching(scene) as here:
        await here.refused(await scene.claim("whole"))
        obstacle = await here.blocked()
        assert obstacle.forms == PLAIN
        await here.later(UNLISTED_SECONDS)
        assert here.blocking.obstacles == (obstacle,)
        scene.mig.destroy(gpu(0).address, theirs.identity, theirs.uuid)
        scene.mig.set_mode(gpu(0).address, enabled=False)
        await here.later()
        await here.free()


async def test_a_reset_that_is_required_blocks_until_somebody_has_done_it() -> None:
    scene = MigScene(A100)
    async with watching(scene) as here:
        error = await here.refused(await scene.claim("whole"))
        assert isinstance(error, ResetRequiredError)
        obstacle = await here.blocked()
        assert obstacle.forms == PLAIN
        await here.later(10 * UNLISTED_SECONDS)
        assert here.blocking.obstacles == (obstacle,)
        scene.mig.set_mode(gpu(0).address, enabled=False)
        here.blocking.look_now()
        await here.free()


async def test_a_card_that_is_lost_is_somebody_elses_to_tell() -> None:
    scene = MigScene(A100)
    async with watching(scene) as here:
        await here.refused(await scene.claim("whole"))
        await here.blocked()
        scene.card().is_lost = True
        await here.later()
        await here.free()


async def test_a_card_that_hangs_keeps_no_other_blocked() -> None:
    scene, go, hangs = MigScene(H100, H100), threading.Event(), {gpu(0).address}
    for number in range(2):
        scene.card(number).processes = (PYTHON,)

    def processes(address: PciAddress) -> tuple[GpuProcess, ...]:
        if address in hangs:
            assert go.wait(60)
        return scene.mig(address)

    published: list[tuple[Obstacle, ...]] = []
    engine = await scene.started(wait_s=0.0)
    blocking = Blocking(
        scene.mig, processes, published.append, lambda: None, clock=scene.clock, patience=0.05
    )
    for number in range(2):
        claim = await scene.claim(f"c{number}", scene.mig_result("3g.40gb", 4, number))
        with pytest.raises(CardInUseError):
            await engine.prepare(claim)
        blocking.observe(scene.events[-1])
    life = asyncio.create_task(blocking.run())
    await until(lambda: bool(published))
    assert {one.card for one in published[-1]} == {gpu(0).address, gpu(1).address}
    scene.card(1).processes = ()

    def freed() -> bool:
        blocking.look_now()
        return len(published[-1]) == 1

    await until(freed)
    assert [one.card for one in published[-1]] == [gpu(0).address]
    go.set()
    life.cancel()
    await asyncio.gather(life, return_exceptions=True)


async def test_a_taken_placement_makes_publish_look_at_the_card_again() -> None:
    scene = MigScene(H100)
    scene.make("3g.40gb", 4)
    async with watching(scene) as here:
        error = await here.refused(await scene.claim("c", scene.mig_result("1g.10gb", 5)))
        assert isinstance(error, PlacementTakenError)
        assert here.looks == 1
        assert here.published == []


async def test_a_claim_that_is_refused_for_itself_blocks_nothing() -> None:
    scene = MigScene(H100)
    async with watching(scene) as here:
        first = await scene.claim("a")
        await here.engine.prepare(first)
        await here.refused(await scene.claim("b"))
        assert here.published == []
