"""Which device file gives access to a MIG instance: what the NVIDIA module says in procfs.

Minor numbers are the kernel's and change with the card's own minor, at a reset or a reboot: they
are read when they are needed, never kept. Everything unreadable is None, never an error.
"""

import re
from pathlib import Path

from dragoon.gpu.mig import CapabilityNode
from dragoon.gpu.pci import Roots

_MINOR = re.compile(r"^DeviceFileMinor:\s*(\d{1,7})\s*$", re.MULTILINE)
_MAJOR = re.compile(r"^\s*(\d{1,4})\s+nvidia-caps\s*$", re.MULTILINE)


def instance_node(
    roots: Roots, card_minor: int | None, gpu_instance: int, compute_instance: int | None = None
) -> CapabilityNode | None:
    """The device file of a GPU instance, or of a compute instance in it; None when not listed."""
    place = roots.proc / f"driver/nvidia/capabilities/gpu{card_minor}/mig/gi{gpu_instance}"
    if compute_instance is not None:
        place /= f"ci{compute_instance}"
    found = _MINOR.search(_text(place / "access"))
    if card_minor is None or found is None:
        return None
    minor = int(found[1])
    major = _MAJOR.search(_text(roots.proc / "devices"))
    name = f"nvidia-caps/nvidia-cap{minor}"
    return CapabilityNode(
        path=f"/dev/{name}",
        minor=minor,
        major=int(major[1]) if major else None,
        exists=(roots.dev / name).exists(),
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
