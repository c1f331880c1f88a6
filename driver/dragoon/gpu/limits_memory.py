"""A fake of `port.MemoryLimits` in memory, for tests of the layers above."""

from dataclasses import dataclass, field
from pathlib import Path

from dragoon.errors import DeviceLostError, StateError
from dragoon.gpu.faults import FeatureMissingError
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.model import PciAddress


@dataclass
class MemoryCaps:
    """Caps by card and cgroup; `used` is what processes there use, for tests to set.

    is_supported: the driver knows caps; cards: those that are there.
    """

    cards: frozenset[PciAddress]
    is_supported: bool = True
    used: dict[tuple[PciAddress, Path], int] = field(default_factory=dict)
    _caps: dict[tuple[PciAddress, Path, int], MemoryLimit] = field(default_factory=dict)

    def get(self, address: PciAddress, cgroup: Path) -> MemoryLimit:
        """See `port.MemoryLimits`."""
        cap = self._caps.get(self._key(address, cgroup), MemoryLimit())
        return MemoryLimit(cap.hard, cap.soft, self.used.get((address, cgroup), 0))

    def set(self, address: PciAddress, cgroup: Path, limit: MemoryLimit) -> MemoryLimit:
        """See `port.MemoryLimits`."""
        self._caps[self._key(address, cgroup)] = limit
        return self.get(address, cgroup)

    def _key(self, address: PciAddress, cgroup: Path) -> tuple[PciAddress, Path, int]:
        if address not in self.cards:
            raise DeviceLostError(f"GPU {address}: the driver does not list it")
        if not (cgroup.is_absolute() and cgroup.is_dir()):
            raise StateError(f"cgroup: found {str(cgroup)!r}, allowed: the full path of its folder")
        if not self.is_supported:
            raise FeatureMissingError(f"GPU {address}: this driver has no caps per cgroup")
        return address, cgroup, cgroup.stat().st_ino
