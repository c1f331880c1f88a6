"""Where the cards of a topology file sit: PCI addresses and the bridges above them. Pure.

Cards that share a switch, a switch above their switch, or only a root complex get paths that say
so; every other card has a root complex of its own. Where a file gives an address or a path, that
is kept; the rest is made up, the same for the same file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoon.gpu.model import PciAddress
from dragoon.gpu.sim.catalogue import product
from dragoon.gpu.sim.schema import GpuEntry, TopologyFile, demand

_FIRST_BUS = 0x10  # buses below belong to what every machine has
_END = 0xF0  # buses from here on are left to NVSwitches
_SAME_SWITCH = frozenset({"PIX"})
_ABOVE_SWITCHES = _SAME_SWITCH | {"PXB"}
_SAME_ROOT = _ABOVE_SWITCHES | {"PHB"}


@dataclass(frozen=True, slots=True)
class Seat:
    """A card's address, and the path from the PCI root down to the bridge above it."""

    address: PciAddress
    bridges: tuple[str, ...]


def seats(topology: TopologyFile) -> tuple[Seat, ...]:
    """One seat per card, by slot."""
    planner = _Planner(topology.gpus)
    for root in _joined(topology, range(topology.count), _SAME_ROOT):
        planner.seat_root(
            [
                _joined(topology, switch, _SAME_SWITCH)
                for switch in _joined(topology, root, _ABOVE_SWITCHES)
            ]
        )
    return tuple(planner.seats[slot] for slot in range(topology.count))


def _joined(
    topology: TopologyFile, slots: Iterable[int], relations: frozenset[str]
) -> list[list[int]]:
    """Sets of the slots that are connected by one of the relations, each set in order."""
    switches = topology.pcie_switch_groups or ()
    matrix = topology.matrix
    groups: list[list[int]] = []
    for slot in slots:
        near = [
            group
            for group in groups
            if any(
                (matrix is not None and matrix[slot][other] in relations)
                or any(slot in switch and other in switch for switch in switches)
                for other in group
            )
        ]
        groups = [group for group in groups if group not in near]
        groups.append(sorted([slot, *(other for group in near for other in group)]))
    return sorted(groups)


def _buses(switches: list[list[list[int]]]) -> int:
    """Bus numbers that a root complex with these switches of leaf switches of slots takes."""
    total = 1
    for leaves in switches:
        layered = len(leaves) > 1
        total += 2 * layered
        total += sum(len(leaf) + 2 * (layered or len(leaf) > 1) for leaf in leaves)
    return total


class _Planner:
    """Hands out bus numbers in order; one root complex after the other."""

    def __init__(self, gpus: Sequence[GpuEntry]) -> None:
        self.seats: dict[int, Seat] = {}
        self._gpus = gpus
        self._given = {PciAddress.parse(gpu.pci) for gpu in gpus if gpu.pci}
        self._domain = 0
        self._next_buses = {0: _FIRST_BUS}

    def seat_root(self, switches: list[list[list[int]]]) -> None:
        """Seats all cards of one root complex: switches of leaf switches of slots."""
        self._choose_domain(self._gpus[switches[0][0][0]], _buses(switches))
        bus = self._next_bus()
        root = f"pci{self._domain:04x}:{bus:02x}"
        for port, leaves in enumerate(switches):
            path: tuple[str, ...] = (root, self._bridge(bus, port + 1))
            if len(leaves) > 1:
                path, inner = self._switch(path)
                for position, leaf in enumerate(leaves):
                    self._seat_leaf(leaf, (*path, self._bridge(inner, position)), alone=False)
            else:
                self._seat_leaf(leaves[0], path, alone=len(leaves[0]) == 1)

    def _choose_domain(self, first: GpuEntry, buses: int) -> None:
        facts = product(first.product)
        if first.pci:
            self._domain = PciAddress.parse(first.pci).domain
        elif facts is not None and facts.grace:
            # As on real boards: 8, 9, 18, 19, 28, ... one domain per root port of a Grace CPU.
            self._domain = first.index // 2 * 0x10 + 8 + first.index % 2
        else:
            self._domain = 0
        demand(buses <= _END - _FIRST_BUS, "PCIe switches", buses, "fewer under one root complex")
        while self._next_buses.setdefault(self._domain, 0) + buses > _END:
            self._domain += 1

    def _seat_leaf(self, slots: list[int], path: tuple[str, ...], *, alone: bool) -> None:
        if alone:
            self._seat_card(slots[0], path)
            return
        path, inner = self._switch(path)
        for position, slot in enumerate(slots):
            self._seat_card(slot, (*path, self._bridge(inner, position)))

    def _seat_card(self, slot: int, path: tuple[str, ...]) -> None:
        entry = self._gpus[slot]
        bridges = tuple(entry.pci_path.split("/")) if entry.pci_path else path
        self.seats[slot] = Seat(self._address(entry), bridges)

    def _address(self, entry: GpuEntry) -> PciAddress:
        if entry.pci:
            return PciAddress.parse(entry.pci)
        address = PciAddress(self._domain, self._next_bus(), 0)
        while address in self._given:
            address = PciAddress(self._domain, self._next_bus(), 0)
        return address

    def _switch(self, path: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        upstream = self._bridge(self._next_bus(), 0)
        return (*path, upstream), self._next_bus()

    def _bridge(self, bus: int, device: int) -> str:
        return str(PciAddress(self._domain, bus, device))

    def _next_bus(self) -> int:
        bus = self._next_buses[self._domain]
        self._next_buses[self._domain] = bus + 1
        return bus
