"""The fields of a topology file, `schema: case-topology/1`.

Besides what public reports say of a machine (product, memory, NUMA, links, MIG listing, fabric), a
file may carry what a program read from one: pci, pciPath, architecture, computeCapability, link
speed, driver versions (`describing` writes them). Fields of prose (sources, notes, expect, ...) are
accepted and ignored.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from dragoon.errors import InvalidInputError

SCHEMA = "case-topology/1"
MAX_GPUS = 64
VIAS = ("none", "bridge", "direct", "nvswitch", "nvswitch (rack)")
MEMORY_QUERIES = ("NOT_SUPPORTED",)

_CPUS: Final = r"^[0-9,-]*\Z"
_PCI: Final = r"^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\Z"
# The names become folders: nothing but root complexes and addresses may come through.
_PCI_PATH: Final = r"^pci[0-9a-f]{4,}:[0-9a-f]{2}(/(pci[0-9a-f]{4,}:[0-9a-f]{2}|[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]))*\Z"
_CAPABILITY: Final = r"^\d{1,3}\.\d{1,3}\Z"
_PROFILE: Final = r"^\d+g\.\d+gb([+-][a-z0-9.]+)*\Z"
_NAME: Final = r"^[a-z0-9][a-z0-9-]{0,62}\Z"
_CUDA: Final = r"^\d{1,3}\.\d\Z"
IN_WORDS: Final = {
    _CPUS: "numbers and ranges of CPUs with commas between them, such as 0-15,32",
    _PCI: "a PCI address, such as 0000:65:00.0",
    _PCI_PATH: "a PCI path from its root, such as pci0000:64/0000:64:01.0",
    _CAPABILITY: "two numbers with a dot between them, such as 9.0",
    _PROFILE: "the name of a MIG profile, such as 1g.10gb",
    _NAME: "at most 63 lower-case letters, digits and -, and no - at the start",
    _CUDA: "a number, a dot and one digit, such as 13.0",
}
"""What texts have to match, as people are told it."""

Slot = Annotated[int, Meta(ge=0, lt=MAX_GPUS)]
Count = Annotated[int, Meta(ge=0, le=4096)]
Mib = Annotated[int, Meta(gt=0, le=1 << 40)]
CpuList = Annotated[str, Meta(pattern=_CPUS)]
Pci = Annotated[str, Meta(pattern=_PCI)]
PciPath = Annotated[str, Meta(pattern=_PCI_PATH)]
Number = Annotated[int, Meta(ge=0, lt=1 << 31)]


class GpuEntry(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One GPU. memoryMiB null, or memoryQuery NOT_SUPPORTED: the card does not say its memory."""

    index: Slot
    product: Annotated[str, Meta(min_length=1, max_length=95)]
    memory_mib: Mib | None = field(name="memoryMiB", default=None)
    memory_query: str | None = None
    host_memory_kib: Number | None = field(name="hostMemoryKiB", default=None)
    numa_node: Number | None = None
    cpus: CpuList | None = None
    gpu_numa_id: Number | None = None
    numa_affinity_text: str | None = None
    mig_capable: bool | None = None
    pci: Pci | None = None
    pci_path: PciPath | None = None
    minor: Number | None = None
    architecture: str | None = None
    brand: str | None = None
    compute_capability: Annotated[str, Meta(pattern=_CAPABILITY)] | None = None


class PairEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """Two linked GPUs and the number of links between them, or of each to the switch."""

    a: Slot
    b: Slot
    links: Annotated[int, Meta(ge=1, le=36)]


class NvlinkEntry(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """All NVLinks. allPairsOf with linksPerPair stands for one entry in pairs for every pair."""

    via: str
    links_per_gpu: Annotated[int, Meta(ge=0, le=36)] = field(name="linksPerGPU", default=0)
    pairs: tuple[PairEntry, ...] = ()
    all_pairs_of: tuple[Slot, ...] = ()
    links_per_pair: Annotated[int, Meta(ge=1, le=36)] | None = None
    groups: tuple[tuple[Slot, ...], ...] = ()
    per: Number | None = None
    version: Number | None = None
    mb_per_second: Number | None = None


class FabricEntry(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The fabric record as tools print it; "N/A" stands for a field without a value."""

    state: str | None = None
    status: str | None = None
    health_summary: str | None = None
    clique_id: Annotated[int, Meta(ge=0, lt=1 << 32)] | Literal["N/A"] | None = None
    cluster_uuid: str | None = field(name="clusterUUID", default=None)
    source: str | None = None


class ProfileEntry(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One line of a MIG profile listing with its placements."""

    name: Annotated[str, Meta(pattern=_PROFILE)]
    id: Number
    instances: Count
    starts: tuple[Count, ...]
    size: Count
    memory_gib: Annotated[float, Meta(gt=0)] | None = field(name="memoryGiB", default=None)
    sms: Count | None = None


class MigEntry(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The MIG profiles of every card that does not say migCapable: false."""

    axis_width: Count
    profiles: tuple[ProfileEntry, ...]
    placements_from: str | None = None
    source: str | None = None


class TopologyFile(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The whole file."""

    schema: Literal["case-topology/1"]
    name: Annotated[str, Meta(pattern=_NAME)]
    count: Annotated[int, Meta(ge=1, le=MAX_GPUS)]
    gpus: tuple[GpuEntry, ...]
    matrix: tuple[tuple[str, ...], ...] | None = None
    nvlink: NvlinkEntry | None = None
    pcie_switch_groups: tuple[tuple[Slot, ...], ...] | None = None
    numa_groups: dict[Number, tuple[Slot, ...]] | None = None
    fabric: FabricEntry | None = None
    mig: MigEntry | None = None
    driver_version: Annotated[str, Meta(max_length=79)] | None = None
    cuda_version: Annotated[str, Meta(pattern=_CUDA)] | None = None
    nvml_symbols: Any = None
    sources: Any = None
    confidence: Any = None
    degraded: Any = None
    notes: Any = None
    expect: Any = None


def demand(holds: object, where: str, found: object, allowed: str) -> None:
    """Raises InvalidInputError, naming field, found and allowed, unless the condition holds."""
    if not holds:
        raise InvalidInputError(f"{where}: found {found!r}, allowed: {allowed}")
