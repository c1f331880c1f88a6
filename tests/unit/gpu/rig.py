"""A simulated machine behind the real adapter, with its controls, for tests."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dragoon.gpu.model import Gpu, Inventory, LostGpu, PciAddress
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import State

REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Rig:
    gpus: NvmlGpus
    hardware: Hardware

    def look(self) -> Inventory:
        return self.gpus.inventory()

    @property
    def state(self) -> State:
        return self.hardware.read()

    def address(self, slot: int) -> PciAddress:
        return self.state.machine.cards[slot].address

    def gpu(self, slot: int) -> Gpu:
        address = self.address(slot)
        return next(gpu for gpu in self.look().gpus if gpu.address == address)

    def lost(self) -> LostGpu:
        (lost,) = self.look().lost
        return lost

    def slots(self, addresses: tuple[PciAddress, ...]) -> list[int]:
        known = [card.address for card in self.state.machine.cards]
        return [known.index(address) for address in addresses]


Simulate = Callable[[str], Rig]


def eventually(condition: Callable[[], bool]) -> None:
    """Until it holds: on a busy machine a card that answers may seem to hang for a while."""
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit


@contextmanager
def rig(machine: str, folder: Path, *, node: str = "") -> Iterator[Rig]:
    file = folder / "machine.json"
    gpus = open_gpus(machine, file, node=node, beside_driver=True)
    try:
        yield Rig(gpus, Hardware(file))
    finally:
        gpus.close()


@contextmanager
def one_card(machine: str, folder: Path) -> Iterator[Rig]:
    """Only the first card of a machine: every change is quick."""
    whole = find_machine(machine)
    hardware = Hardware.installed(
        folder / "machine.json", replace(whole, cards=whole.cards[:1]), "node"
    )
    gpus = NvmlGpus(hardware.roots, stand_in=SimulatedLibrary(hardware))
    try:
        yield Rig(gpus, hardware)
    finally:
        gpus.close()
