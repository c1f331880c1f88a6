"""A claim whose card hangs or whose effects fail costs itself: all other claims are kept in order."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.mig import MigInstance
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.kube.port import CLAIMS
from dragoon.prepare.effects import state_error
from dragoon.prepare.effects_memory import MemoryDisk, MemoryEffects
from dragoon.prepare.mig_faults import FaultyMigCards
from dragoon.prepare.observing import Counted, Repaired, Reported, Swept
from tests.unit.prepare.keeping import PATHS
from tests.unit.prepare.migging import H100, ON, HangingCards, MigScene
from tests.unit.prepare.scene import Scene, gpu, result, until
from tests.unit.prepare.sharing import pod_with_claims


class Failing(MemoryEffects):
    """A process that cannot remove the files of one claim."""

    def __init__(self, disk: MemoryDisk, uid: str) -> None:
        super().__init__(disk)
        self.uid = uid

    def remove(self, path: Path) -> None:
        self._refuse(path)
        super().remove(path)

    def remove_tree(self, path: Path) -> None:
        self._refuse(path)
        super().remove_tree(path)

    def _refuse(self, path: Path) -> None:
        if self.uid in path.name:
            raise state_error("remove", path, OSError(errno.EIO, ""))


@pytest.fixture
def divided() -> MigScene:
    """Two cards that can be divided."""
    return MigScene(H100, H100)


@contextmanager
def hanging(scene: MigScene) -> Iterator[HangingCards]:
    """They answer in the end, so that no thread outlives the test."""
    cards = HangingCards(scene.disk)
    try:
        yield cards
    finally:
        cards.answer.set()


async def test_a_claim_that_is_gone_and_whose_card_hangs_keeps_no_other_from_being_released(
    divided: MigScene,
) -> None:
    stuck = await divided.claim("stuck", divided.mig_result("3g.40gb", 4))
    other = await divided.claim("other", result(1))
    for claim in (stuck, other):
        await divided.half_prepared(claim)
        await divided.api.delete(CLAIMS, claim.name, namespace=claim.namespace)
    with hanging(divided) as cards:
        engine = await divided.started(cards, cards_s=0.05, lock_s=0.05)

        await engine.reconcile()
        await engine.reconcile()
        assert len(divided.told(Swept)) == 2

        await until(lambda: bool(divided.told(Repaired)))
        assert [one.uid for one in divided.told(Repaired)] == [other.uid]
        assert any("its GPU does not answer" in one.problem for one in divided.told(Reported))

        cards.answer.set()
        await until(lambda: not cards.exists(PATHS.journal(stuck.uid)))
        await engine.finished()
    assert divided.files == {}


async def test_a_claim_that_is_gone_and_cannot_be_taken_back_keeps_no_other_from_being_released(
    scene: Scene,
) -> None:
    claims = [await scene.claim(f"c{n}", result(n)) for n in range(2)]
    for claim in claims:
        await scene.half_prepared(claim)
        await scene.api.delete(CLAIMS, claim.name, namespace=claim.namespace)
    first, second = sorted(claim.uid for claim in claims)

    engine = await scene.started(Failing(scene.disk, first))
    await engine.reconcile()

    assert [one.uid for one in scene.told(Repaired)] == [second]
    assert {one.uid for one in scene.told(Reported)} == {first}


async def test_a_region_that_cannot_be_removed_keeps_no_other_from_it_and_no_claim_from_being_counted(
    scene: Scene,
) -> None:
    effects = Failing(scene.disk, "aaaa")
    engine = await scene.started(effects)
    regions = [PATHS.region(number * 4, "main") for number in "abc"]
    for path in regions:
        effects.make_folder(path, 0o711)
    scene.events.clear()

    await engine.reconcile()

    assert effects.names(PATHS.region_folder) == (regions[0].name,)
    assert scene.told(Counted)
    (told,) = scene.told(Reported)
    assert regions[0].name in told.problem


class SilentCard(MemoryEffects):
    """A process that one card does not tell what instances it has."""

    @property
    def mig(self) -> FaultyMigCards:
        return Silent(self.disk.cards.mig, self._perform, self._alive)


class Silent(FaultyMigCards):
    def instances(self, address: PciAddress) -> tuple[MigInstance, ...]:
        if address == gpu(0).address:
            raise HardwareError("it does not answer", retryable=True)
        return super().instances(address)


async def test_a_card_that_does_not_answer_hides_what_is_left_on_no_other(
    divided: MigScene,
) -> None:
    left = divided.make("3g.40gb", 4, number=1)
    divided.mig.halve(gpu(1).address, left.identity)
    divided.gpus.found = Inventory(gpus=(gpu(0, mig=ON), gpu(1, mig=ON)), simulated=True)
    engine = await divided.started(SilentCard(divided.disk))

    await engine.reconcile()

    assert any("3g.40gb at 4:4" in one.problem for one in divided.told(Reported))


async def test_a_claim_whose_card_hangs_keeps_no_process_from_starting_and_no_file_from_coming_back(
    divided: MigScene,
) -> None:
    stuck = await divided.claim("stuck", divided.mig_result("3g.40gb", 4))
    others = [await divided.claim(f"c{n}", result(1, adminAccess=True)) for n in range(4)]
    before = await divided.started()
    for claim in (stuck, *others):
        await before.prepare(claim)
    outside = MemoryEffects(divided.disk)
    specs = {PATHS.spec(claim.uid): outside.read(PATHS.spec(claim.uid)) for claim in others}
    for path in specs:
        outside.remove(path)

    with hanging(divided) as cards:
        engine = await divided.started(cards, cards_s=0.05)

        await until(lambda: all(outside.read(path) == data for path, data in specs.items()))
        await until(lambda: cards.asked > 0)
        assert any("driver has not answered" in one.problem for one in divided.told(Reported))
        asked = cards.asked
        await engine.reconcile()
        assert cards.asked == asked, "it is not asked again while it hangs"
        for claim in others:
            await engine.unprepare(claim)


async def test_a_damaged_entry_whose_card_hangs_keeps_no_file_of_another_claim_from_coming_back(
    divided: MigScene,
) -> None:
    results = {"stuck": (divided.mig_result("3g.40gb", 4),), "other": (result(1),)}
    _, claims = await pod_with_claims(divided, "p", results)
    stuck, other = claims["stuck"], claims["other"]
    before = await divided.started()
    for claim in (stuck, other):
        await before.prepare(claim)
    outside, path = MemoryEffects(divided.disk), PATHS.spec(other.uid)
    spec = outside.read(path)
    outside.write(PATHS.journal(stuck.uid), b"{", 0o600)

    with hanging(divided) as cards:
        engine = await divided.started(cards, cards_s=0.05)
        await engine.reconcile()
        await until(lambda: cards.asked > 0)
        outside.remove(path)

        await engine.reconcile()
        await until(lambda: outside.read(path) == spec)

        cards.answer.set()
        await until(lambda: outside.exists(PATHS.journal(stuck.uid)))
        await engine.finished()
    assert await divided.engine().prepare(stuck)
