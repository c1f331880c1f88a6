"""Cards of the simulated library as hardware of prepare: behind the real adapter, under pynvml."""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.model import MigMode, PciAddress, Placement
from tests.contract.gpu.subjects import Simulated
from tests.unit.gpu.rig import Rig, one_card
from tests.unit.prepare.scene import gpu


class SimulatedCards:
    """`MigHardware` over simulated machines. of: machine and address of each card, by the address
    that prepare knows."""

    def __init__(self, of: Mapping[PciAddress, tuple[Simulated, PciAddress]]) -> None:
        self._of = of

    def card(self, address: PciAddress) -> MigCard | None:
        found, there = self._of[address]
        return found.cards.card(there)

    def instances(self, address: PciAddress) -> tuple[MigInstance, ...]:
        found, there = self._of[address]
        return found.cards.instances(there)

    def set_mode(self, address: PciAddress, *, enabled: bool) -> MigMode:
        found, there = self._of[address]
        return found.cards.set_mode(there, enabled=enabled)

    def create(self, address: PciAddress, profile: str, placement: Placement) -> MigInstance:
        found, there = self._of[address]
        return found.cards.create(there, profile, placement)

    def destroy(self, address: PciAddress, identity: int, uuid: str | None) -> None:
        found, there = self._of[address]
        found.cards.destroy(there, identity, uuid)

    def halve(self, address: PciAddress, identity: int) -> None:
        found, there = self._of[address]
        found.halve(there, identity)

    def reboot(self) -> None:
        for found in {id(found): found for found, _ in self._of.values()}.values():
            found.reboot()


def one_of_each(stack: ExitStack, *machines: str) -> SimulatedCards:
    """The first card of each machine, at the addresses of `scene.gpu`; Ampere's in MIG mode."""
    cards: dict[PciAddress, tuple[Simulated, PciAddress]] = {}
    for number, machine in enumerate(machines):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = Simulated(stack.enter_context(one_card(machine, folder)))
        cards[gpu(number).address] = (found, found.addresses[0])
        card = found.cards.card(found.addresses[0])
        if card is not None and not card.resetless:
            found.cards.set_mode(found.addresses[0], enabled=True)
    return SimulatedCards(cards)


def every_card(rig: Rig) -> SimulatedCards:
    """All cards of one machine, at their own addresses."""
    found = Simulated(rig)
    return SimulatedCards({address: (found, address) for address in found.addresses})
