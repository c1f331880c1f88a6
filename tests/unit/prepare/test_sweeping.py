"""What is found on the hardware itself: halves of instances, and files of a driver that is gone."""

import threading
from pathlib import Path

import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.model import Inventory
from dragoon.prepare import cdi
from dragoon.prepare.cdi import Edits, Mount
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.engine import Engine
from dragoon.prepare.observing import Repaired, Reported, Swept
from tests.unit.prepare.migging import H100, ON, PATHS, HangingCards, MigScene
from tests.unit.prepare.scene import Scene, gpu, inventory, settings, until

OLD, NEW = Path("/usr/lib64/libcuda.so.580"), Path("/usr/lib64/libcuda.so.590")
HOST = Path("/host")
NODES = ("/dev/nvidia0", "/dev/nvidia1")


def half_on(scene: MigScene) -> None:
    """Somebody left a GPU instance without a compute instance."""
    left = scene.make("3g.40gb", 4)
    scene.mig.halve(gpu(0).address, left.identity)
    scene.gpus.found = Inventory(gpus=(gpu(0, mig=ON),), simulated=True)


async def test_a_half_that_no_claim_has_is_told_once_with_its_name_and_never_touched() -> None:
    scene = MigScene(H100)
    half_on(scene)
    engine = await scene.started()

    await engine.reconcile()
    await engine.reconcile()

    (told,) = scene.told(Reported)
    assert "3g.40gb at 4:4" in told.problem
    assert "--destroy-gpu-instance" in told.problem
    assert scene.there() == [("3g.40gb", 4)]


async def test_a_card_that_hangs_stops_no_comparison_with_the_api_server() -> None:
    scene = MigScene(H100)
    half_on(scene)
    cards = HangingCards(scene.disk)
    engine = await scene.started(cards, cards_s=0.01)

    await engine.reconcile()
    await engine.reconcile()
    assert scene.told(Reported) == []
    assert cards.asked == 1, "it is not asked again while it hangs"
    assert len(scene.told(Swept)) == 2

    cards.answer.set()
    await until(lambda: not [one for one in threading.enumerate() if one.name == "gpu-call"])
    engine = await scene.started(cards)
    await engine.reconcile()
    assert "3g.40gb at 4:4" in scene.told(Reported)[-1].problem


async def test_a_half_is_told_again_after_it_had_gone() -> None:
    scene = MigScene(H100)
    half_on(scene)
    engine = await scene.started()
    await engine.reconcile()
    (half,) = scene.card().instances
    scene.mig.destroy(gpu(0).address, half.identity, None)
    await engine.reconcile()
    half_on(scene)
    await engine.reconcile()
    assert len(scene.told(Reported)) == 2


async def test_whole_instances_of_others_and_halves_of_claims_are_nobodys_problem() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("3g.40gb", 4))
    await engine.prepare(claim)
    scene.make("1g.10gb", 1)
    ours = next(one for one in scene.card().instances if one.placement.start == 4)
    scene.mig.halve(gpu(0).address, ours.identity)
    scene.gpus.found = Inventory(gpus=(gpu(0, mig=ON),), simulated=True)

    await engine.reconcile()

    assert not [one for one in scene.told(Reported) if "destroy-gpu-instance" in one.problem]


def here(path: Path) -> Path:
    """Where the plugin sees a file of the node from inside its container."""
    return HOST / path.relative_to("/")


class Driver:
    """The driver's files on a node, and what a container gets of them."""

    def __init__(self, scene: Scene) -> None:
        self.effects = MemoryEffects(scene.disk)
        self.library = OLD
        self.is_missing = False
        for path in (here(OLD), *map(Path, NODES)):
            self.effects.make_folder(path.parent, 0o755)
            self.effects.write(path, b"", 0o644)

    def replace(self) -> None:
        self.effects.remove(here(OLD))
        self.effects.write(here(NEW), b"", 0o644)
        self.library = NEW

    def edits(self, _: Inventory) -> Edits:
        if self.is_missing:
            raise HardwareError("no libcuda.so below /", retryable=True)
        return Edits(mounts=(Mount(str(self.library), "/usr/lib64/libcuda.so.1", ("ro", "bind")),))


@pytest.fixture
def scene() -> Scene:
    found = Scene()
    found.gpus.found = inventory(2, simulated=False)
    return found


async def started(scene: Scene, driver: Driver) -> Engine:
    async def look() -> Inventory:
        return scene.gpus.found

    engine = Engine(
        scene.api,
        look,
        MemoryEffects(scene.disk),
        settings(scene.root, host_root=HOST),
        common=driver.edits,
        clock=scene.clock,
        observer=scene.events.append,
    )
    await engine.start()
    return engine


def mounts(scene: Scene, uid: str) -> list[str]:
    spec = cdi.decode(scene.disk.files()[PATHS.spec(uid)])
    return [mount.host_path for mount in spec.container_edits.mounts]


async def test_a_prepared_claim_gets_the_files_of_the_driver_that_replaced_the_old_one(
    scene: Scene,
) -> None:
    driver = Driver(scene)
    engine = await started(scene, driver)
    claim = await scene.claim("one")
    answer = await engine.prepare(claim)
    assert mounts(scene, claim.uid) == [str(OLD)]

    driver.replace()
    await engine.reconcile()

    assert mounts(scene, claim.uid) == [str(NEW)], "or a container that restarts would fail"
    assert any("driver were replaced" in event.what for event in scene.told(Repaired))
    assert await engine.prepare(claim) == answer
    await engine.unprepare(claim)
    assert not [name for name in scene.files if claim.uid in name]


async def test_while_there_is_no_driver_it_is_told_once_and_then_the_spec_is_renewed(
    scene: Scene,
) -> None:
    driver = Driver(scene)
    engine = await started(scene, driver)
    claim = await scene.claim("one")
    await engine.prepare(claim)
    driver.replace()
    driver.is_missing = True
    await engine.reconcile()
    await engine.reconcile()
    assert mounts(scene, claim.uid) == [str(OLD)]
    (told,) = scene.told(Reported)
    assert told.uid == claim.uid
    assert "no libcuda.so below /" in told.problem

    driver.is_missing = False
    await engine.reconcile()
    assert mounts(scene, claim.uid) == [str(NEW)]


async def test_a_spec_whose_files_are_all_there_is_left_as_it_is(scene: Scene) -> None:
    driver = Driver(scene)
    engine = await started(scene, driver)
    claim = await scene.claim("one")
    await engine.prepare(claim)
    before = scene.disk.files()[PATHS.spec(claim.uid)]
    driver.library = NEW  # the toolkit says something else now, and the old files still work

    await engine.reconcile()

    assert scene.disk.files()[PATHS.spec(claim.uid)] == before
    assert scene.told(Repaired) == []
