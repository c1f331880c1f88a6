"""The two implementations of the MIG ports, each with what tests do to it from outside."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from dragoon.gpu.mig import GpuProcess, MigCard
from dragoon.gpu.mig_memory import MemoryMigCards
from dragoon.gpu.model import MigMode, PciAddress
from dragoon.gpu.port import MigCards, Processes
from dragoon.gpu.sim.occupants import ProcessState
from dragoon.gpu.sim.state import State, changed
from tests.unit.gpu.rig import Rig, rig


class Subject(Protocol):
    """cards and processes are under test; the rest is what others do to the hardware."""

    @property
    def cards(self) -> MigCards: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def addresses(self) -> list[PciAddress]: ...
    def run(self, address: PciAddress, process: GpuProcess) -> None: ...
    def end(self, address: PciAddress, pid: int) -> None: ...
    def halve(self, address: PciAddress, identity: int) -> None: ...
    def block_reset(self, address: PciAddress) -> None: ...
    def lose(self, address: PciAddress) -> None: ...
    def reboot(self) -> None: ...


class Simulated:
    """The adapter over the simulated library."""

    def __init__(self, machine: Rig) -> None:
        self._hardware = machine.hardware
        self.cards = machine.gpus.mig
        self.processes = machine.gpus.processes
        self.addresses = [card.address for card in machine.state.machine.cards]

    def run(self, address: PciAddress, process: GpuProcess) -> None:
        state = ProcessState(
            pid=process.pid,
            name=process.name or "",
            memory=process.used_bytes or 0,
            gpu_instance=process.gpu_instance,
            compute_instance=process.compute_instance,
        )
        self._hardware.run(self.addresses.index(address), state)

    def end(self, address: PciAddress, pid: int) -> None:
        self._hardware.end(self.addresses.index(address), pid)

    def halve(self, address: PciAddress, identity: int) -> None:
        slot = self.addresses.index(address)

        def decide(state: State) -> State:
            instances = tuple(
                replace(one, compute=()) if one.identity == identity else one
                for one in state.cards[slot].instances
            )
            return changed(state, slot, instances=instances)

        self._hardware.change(decide)

    def block_reset(self, address: PciAddress) -> None:
        self._hardware.block_reset(self.addresses.index(address))

    def lose(self, address: PciAddress) -> None:
        self._hardware.lose(self.addresses.index(address))

    def reboot(self) -> None:
        self._hardware.reboot()


class Faked:
    """The fake, with cards that offer the same."""

    def __init__(self, cards: list[MigCard], addresses: list[PciAddress]) -> None:
        known = {card.address for card in cards}
        self.fake = MemoryMigCards.of(cards, [a for a in addresses if a not in known])
        self.addresses = addresses

    @property
    def cards(self) -> MemoryMigCards:
        return self.fake

    processes = cards

    def run(self, address: PciAddress, process: GpuProcess) -> None:
        card = self.fake.cards[address]
        card.processes = (*card.processes, process)

    def end(self, address: PciAddress, pid: int) -> None:
        card = self.fake.cards[address]
        card.processes = tuple(one for one in card.processes if one.pid != pid)

    def halve(self, address: PciAddress, identity: int) -> None:
        self.fake.halve(address, identity)

    def block_reset(self, address: PciAddress) -> None:
        self.fake.cards[address].can_reset = False

    def lose(self, address: PciAddress) -> None:
        self.fake.cards[address].is_lost = True

    def reboot(self) -> None:
        self.fake.reboot()


@contextmanager
def subject(kind: str, machine: str, folder: Path) -> Iterator[Subject]:
    """A machine just switched on, behind the fake or behind the adapter."""
    with rig(machine, folder) as simulated:
        real = Simulated(simulated)
        if kind == "simulated":
            yield real
            return
        found = [real.cards.card(address) for address in real.addresses]
        assert all(card is None or card.mode == MigMode(False, False) for card in found)
        yield Faked([card for card in found if card is not None], real.addresses)
