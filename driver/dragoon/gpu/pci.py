"""What the kernel tells of GPUs without the driver library: sysfs and procfs.

Used for two things NVML does not say: where a card sits (PCIe root, NUMA node of the CPUs), and
which cards exist when NVML has lost one. Everything unreadable is None or absent, never an error.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from dragoon.errors import InvalidInputError
from dragoon.gpu.model import PciAddress

_VENDOR = 0x10DE  # NVIDIA in the PCI ID list
_DISPLAY_CLASSES = (0x0300, 0x0302)  # VGA controller, 3D controller
_ROOT = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")
_UUID = re.compile(
    r"GPU UUID:\s*(GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s*$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the kernel's trees are mounted: settings, as a container sees the host's elsewhere."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a card sits.

    root is `pciDDDD:BB` (the standard attribute `resource.kubernetes.io/pcieRoot`); path goes from
    the root down to the bridge above the card; numa_node is the node of the CPUs next to it.
    """

    root: str | None = None
    path: tuple[str, ...] = ()
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class BusCard:
    """A card as the kernel lists it.

    kernel_driver is None when nothing is bound to it; listed says that the NVIDIA module has it.
    """

    address: PciAddress
    kernel_driver: str | None = None
    listed: bool = False

    @property
    def ours(self) -> bool:
        """The NVIDIA module drives it."""
        return self.listed or self.kernel_driver == "nvidia"

    @property
    def foreign(self) -> bool:
        """Somebody else drives it, such as vfio-pci for a virtual machine."""
        return not self.ours and self.kernel_driver is not None


def seat(roots: Roots, address: PciAddress) -> Seat:
    """Reads where the card sits; what cannot be read stays empty."""
    device = _device(roots, address)
    path = _path(device)
    return Seat(
        root=path[0] if path else None, path=path, numa_node=_numa_node(roots, device / "numa_node")
    )


def node_cpus(roots: Roots, node: int) -> str | None:
    """The CPUs of a NUMA node as the kernel lists them, `0-55,112-167`."""
    return _text(roots.sys / f"devices/system/node/node{node}/cpulist") or None


def bus_cards(roots: Roots) -> tuple[BusCard, ...]:
    """Every NVIDIA display device on the bus, every card the NVIDIA module lists, by address."""
    listed = _names(roots.proc / "driver/nvidia/gpus")
    on_bus = {
        address for address in _names(roots.sys / "bus/pci/devices") if _is_gpu(roots, address)
    }
    return tuple(
        BusCard(
            address,
            kernel_driver=_kernel_driver(roots, address),
            listed=address in listed,
        )
        for address in sorted(on_bus | listed)
    )


def listed_uuid(roots: Roots, address: PciAddress) -> str | None:
    """The UUID in the NVIDIA module's own listing of a card.

    The module asks the card for it, and wakes one that sleeps: where that hangs, this hangs.
    """
    text = _text(roots.proc / "driver/nvidia/gpus" / str(address) / "information")
    found = _UUID.search(text or "")
    return found.group(1) if found else None


def _device(roots: Roots, address: PciAddress) -> Path:
    return roots.sys / "bus/pci/devices" / str(address)


def _path(device: Path) -> tuple[str, ...]:
    try:
        parts = Path(os.path.realpath(device, strict=True)).parts
    except OSError:
        return ()
    for position, part in enumerate(parts):
        if _ROOT.fullmatch(part):
            return parts[position:-1]
    return ()


def _numa_node(roots: Roots, file: Path) -> int | None:
    node = _number(file, base=10)
    if node is None or node < 0:  # the kernel says -1 where it does not know
        return None
    cpus = _text(roots.sys / f"devices/system/node/node{node}/cpulist")
    # A node without CPUs is memory, on Grace systems the GPU's own.
    return None if cpus == "" else node


def _is_gpu(roots: Roots, address: PciAddress) -> bool:
    device = _device(roots, address)
    if _number(device / "vendor", base=16) != _VENDOR:
        return False
    kind = _number(device / "class", base=16)  # 24 bits: class, subclass, interface
    return kind is not None and kind >> 8 in _DISPLAY_CLASSES


def _kernel_driver(roots: Roots, address: PciAddress) -> str | None:
    try:
        return (_device(roots, address) / "driver").readlink().name
    except OSError:
        return None


def _names(folder: Path) -> set[PciAddress]:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return set()
    found = set()
    for name in names:
        try:
            found.add(PciAddress.parse(name))
        except InvalidInputError:
            continue
    return found


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def _number(file: Path, *, base: int) -> int | None:
    try:
        return int(_text(file) or "", base)
    except ValueError:
        return None
