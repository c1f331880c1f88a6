"""What a simulated machine is: frozen data, as wired and seated, without anything that happened."""

from dataclasses import dataclass

from dragoon.gpu.model import MigProfile, PciAddress

# Numbers of nvml.h that the simulated library answers with.
FABRIC_NOT_SUPPORTED, FABRIC_NOT_STARTED, FABRIC_IN_PROGRESS, FABRIC_COMPLETED = range(4)


@dataclass(frozen=True, slots=True)
class Wire:
    """One NVLink of a card: where it leads.

    slot and peer_link name the GPU link at the other end; switch is the switch's PCI address, None
    for switches outside the machine. A link that leads nowhere is there, and down for good.
    """

    slot: int | None = None
    peer_link: int | None = None
    switch: PciAddress | None = None
    to_switch: bool = False

    @property
    def leads_somewhere(self) -> bool:
        return self.to_switch or self.slot is not None


@dataclass(frozen=True, slots=True)
class FabricRecord:
    """What the fabric query answers: state, status (an NVML code), UUID, clique, health summary."""

    state: int = FABRIC_NOT_SUPPORTED
    status: int = 0
    cluster_uuid: str = "00000000-0000-0000-0000-000000000000"
    clique: int = 0
    health: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU as it sits in its slot. bridges go from the PCI root down to the card."""

    product: str
    address: PciAddress
    bridges: tuple[str, ...]
    memory_mib: int | None = None
    numa_node: int | None = None
    cpus: str | None = None
    gpu_memory_node: int | None = None
    architecture: str | None = None
    brand: str | None = None
    compute_capability: tuple[int, int] | None = None
    minor: int | None = None
    link_version: int | None = None
    link_mb_per_second: int | None = None
    wires: tuple[Wire, ...] = ()
    mig: tuple[MigProfile, ...] = ()
    fabric: FabricRecord = FabricRecord()


@dataclass(frozen=True, slots=True)
class Machine:
    """All cards by slot; the slot is the card's number in the topology file."""

    name: str
    cards: tuple[Card, ...]
    driver_version: str
    cuda_version: int
