"""A node with cards that can be divided: what tests of MIG instances start from."""

import tempfile
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dragoon.api.claims import ClaimRef
from dragoon.api.forms import Form
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.mig_memory import MemoryCard, MemoryMigCards
from dragoon.gpu.model import Inventory, MigMode, Placement
from dragoon.gpu.naming import mig_name
from dragoon.prepare.effects_memory import MemoryDisk, MemoryEffects
from dragoon.prepare.engine import Engine
from dragoon.prepare.injection import Injected, inject
from dragoon.prepare.journal import Entry, Journal
from dragoon.prepare.mig_faults import FaultyMigCards
from tests.unit.gpu.rig import one_card
from tests.unit.prepare.scene import Scene, gpu, result, settings

A100, H100, A30, RTX = "dgx-a100-40gb", "dgx-h100", "a30-2way", "rtx-pro-6000-2way"
PATHS = settings(Path("/node")).paths
ON, OFF = MigMode(enabled=True, pending=True), MigMode(enabled=False, pending=False)


@cache
def simulated_card(machine: str) -> MigCard:
    """The first card of a simulated machine, as it tells about itself."""
    with tempfile.TemporaryDirectory() as folder, one_card(machine, Path(folder)) as rig:
        found = rig.gpus.mig.card(rig.address(0))
    assert found is not None
    return found


class MigScene(Scene):
    """GPUs of these kinds at the addresses of `scene.gpu`; those of Ampere are in MIG mode."""

    def __init__(self, *machines: str, forms: tuple[Form, ...] = tuple(Form)) -> None:
        super().__init__()
        self.forms = forms
        found = [
            replace(simulated_card(machine), address=gpu(n).address, uuid=gpu(n).uuid)
            for n, machine in enumerate(machines or (H100,))
        ]
        cards = [card if card.resetless else replace(card, mode=ON) for card in found]
        self.mig = MemoryMigCards.of(cards)
        self.disk.cards.mig = self.mig
        self.show(simulated=True)

    def show(self, *, simulated: bool) -> None:
        """What the inventory says of the cards."""
        gpus = tuple(gpu(n, mig=OFF) for n in range(len(self.mig.cards)))
        self.gpus.found = Inventory(gpus=gpus, simulated=simulated)

    def engine(self, effects: Any = None, **changes: Any) -> Engine:
        return super().engine(effects, forms=lambda: self.forms, **changes)

    def card(self, number: int = 0) -> MemoryCard:
        return self.mig.cards[gpu(number).address]

    def there(self, number: int = 0) -> list[tuple[str, int]]:
        """Profile and start of the instances of a card."""
        return [(one.profile.name, one.placement.start) for one in self.card(number).instances]

    def name(self, profile: str, start: int, number: int = 0) -> str:
        """The device of that profile and start."""
        card = self.card(number).card
        return mig_name(card.address, card.profile(profile), start)

    def mig_result(
        self, profile: str, start: int, number: int = 0, **changes: Any
    ) -> dict[str, Any]:
        """One MIG device in an allocation."""
        return result(number, device=self.name(profile, start, number), **changes)

    def make(self, profile: str, start: int, number: int = 0) -> MigInstance:
        """Somebody else makes an instance."""
        address = gpu(number).address
        self.mig.set_mode(address, enabled=True)
        size = self.card(number).card.profile(profile).size
        return self.mig.create(address, profile, Placement(start, size))

    def entries(self) -> tuple[Entry, ...]:
        """What the journal says."""
        return Journal(MemoryEffects(self.disk), PATHS).contents().entries


class HangingCards(MemoryEffects):
    """A process whose cards do not say what instances they have until they are let."""

    def __init__(self, disk: MemoryDisk) -> None:
        super().__init__(disk)
        self.asked = 0
        self.answer = threading.Event()

    @property
    def mig(self) -> FaultyMigCards:
        return FaultyMigCards(self.disk.cards.mig, self._perform, self._hang)

    def _hang(self) -> None:
        self.asked += 1
        self.answer.wait()


def inside(scene: MigScene, claim: ClaimRef, *ids: str) -> Injected:
    """What a container gets."""
    documents = [d for p, d in scene.disk.files().items() if p.parent == PATHS.cdi_folder]
    return inject(documents, ids)


async def ids(engine: Engine, claim: ClaimRef) -> tuple[str, ...]:
    """The CDI names that the kubelet is answered."""
    return tuple(i for one in await engine.prepare(claim) for i in one.cdi_ids)
