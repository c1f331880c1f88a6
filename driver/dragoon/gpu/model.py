"""What Dragoon knows of the GPUs of a node: frozen data, no behaviour beyond parsing and names.

Every number is as the driver said it; what the driver would not say is None, never a guess.
Sizes are bytes, link speeds MB/s per direction as NVML gives them.
"""

import enum
import re
from dataclasses import dataclass, field
from typing import Self

from dragoon.errors import InvalidInputError

_PCI = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2})(?:\.(?P<function>[0-7]))?"
)


@dataclass(frozen=True, slots=True, order=True)
class PciAddress:
    """Domain, bus, device and function; sorts as the bus does."""

    domain: int
    bus: int
    device: int
    function: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `00000000:65:00.0` (NVML), `0000:65:00.0` (the kernel) or `65:00.0`.

        Raises InvalidInputError for anything else.
        """
        found = _PCI.fullmatch(text.strip().lower())
        if found is None:
            raise InvalidInputError(
                f"PCI address: found {text!r}, expected domain:bus:device.function"
            )
        parts = found.groupdict(default="0")
        return cls(*(int(parts[name], 16) for name in ("domain", "bus", "device", "function")))

    def __str__(self) -> str:
        """The kernel's form, `0000:65:00.0`."""
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.{self.function:x}"

    @property
    def slug(self) -> str:
        """The form used in device names, `0000-65-00-0`: valid in a DNS label."""
        return f"{self.domain:04x}-{self.bus:02x}-{self.device:02x}-{self.function:x}"


class LinkRemote(enum.Enum):
    """What is at the other end of an NVLink."""

    GPU = "gpu"
    SWITCH = "switch"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NvLink:
    """One NVLink of one GPU (nvmlDeviceGetNvLinkState and friends).

    peer is the remote PCI address where the driver gives one; behind switches it is the switch's.
    """

    index: int
    active: bool
    remote: LinkRemote = LinkRemote.UNKNOWN
    peer: PciAddress | None = None
    version: int | None = None
    mb_per_second: int | None = None


class FabricState(enum.Enum):
    """State of the registration with the NVLink fabric (nvmlGpuFabricInfoV)."""

    UNSUPPORTED = "unsupported"
    NOT_STARTED = "not started"
    IN_PROGRESS = "in progress"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Fabric:
    """NVLink fabric membership.

    cluster_uuid and clique_id are set only when state is COMPLETED, the status is success and the
    UUID is not all zero: only then is there a fabric that spans nodes. Otherwise reason says why;
    beside a UUID, reason is a complaint of the fabric about this card.
    """

    state: FabricState
    cluster_uuid: str | None = None
    clique_id: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MigMode:
    """MIG mode of a card that has MIG. Absent (None on the Gpu) where the card has none."""

    enabled: bool
    pending: bool


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """A run of memory slices of a card (nvmlGpuInstancePlacement_t)."""

    start: int
    size: int

    def __str__(self) -> str:
        """As `nvidia-smi mig -lgi` prints it, `4:4`."""
        return f"{self.start}:{self.size}"

    def overlaps(self, other: Self) -> bool:
        """Both take some memory slice."""
        return self.start < other.start + other.size and other.start < self.start + self.size


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A GPU instance profile that a card offers, with its possible placements.

    number is NVML's enum (NVML_GPU_INSTANCE_PROFILE_*), identity the id that the driver gives it;
    slices are compute slices; starts and size count memory slices; instances is how many fit on an
    empty card.
    """

    name: str
    number: int
    identity: int
    slices: int
    instances: int
    memory_mib: int | None
    multiprocessors: int | None
    starts: tuple[int, ...]
    size: int

    @property
    def memory_bytes(self) -> int | None:
        """What an instance can use; None where the card does not say it."""
        return None if self.memory_mib is None else self.memory_mib << 20

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Where an instance may lie, by start."""
        return tuple(Placement(start, self.size) for start in self.starts)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU that answers. index and minor may change at every boot: never part of a name.

    pci_path is the way down to the card in sysfs: root complex, then every bridge, without the
    card itself. problems are the questions it answered with an error, in words.
    """

    address: PciAddress
    index: int
    uuid: str
    product: str | None = None
    brand: str | None = None
    architecture: str | None = None
    compute_capability: tuple[int, int] | None = None
    memory_bytes: int | None = None
    minor: int | None = None
    mig: MigMode | None = None
    links: tuple[NvLink, ...] = ()
    fabric: Fabric = field(default_factory=lambda: Fabric(FabricState.UNSUPPORTED))
    numa_node: int | None = None
    pcie_root: str | None = None
    pci_path: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LostGpu:
    """A GPU that the bus or the driver still lists but that answers nothing.

    address is None when nothing tells it; such a card can be reported but not published. hangs: it
    has only not answered in time. So it may answer again without anybody having recovered it.
    """

    address: PciAddress | None
    reason: str
    uuid: str | None = None
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything found on this node in one look, ordered by PCI address."""

    gpus: tuple[Gpu, ...] = ()
    lost: tuple[LostGpu, ...] = ()
    driver_version: str | None = None
    cuda_version: tuple[int, int] | None = None
    simulated: bool = False

    @property
    def cards(self) -> "tuple[Gpu | LostGpu, ...]":
        """Every card, those that answer first."""
        return (*self.gpus, *self.lost)

    @property
    def degraded(self) -> bool:
        """Some card is lost; the rest works."""
        return bool(self.lost)
