"""Finding out whether the driver's memory caps work here: one must really refuse an allocation.

Pods are capped on their own cgroup, and their processes live in cgroups below it. Whether a cap
covers those depends on how the driver counts (`dmem` does, `misc` is described as flat), so nothing
but a try tells (enforcement.md section 0.4). Not yet run on hardware.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from dragoon.api.forms import MIB
from dragoon.errors import DragoonError
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.model import Gpu, Inventory
from dragoon.gpu.port import MemoryLimits

ALLOCATION: Final = 1024 * MIB
CAP: Final = 768 * MIB
"""More than a CUDA context needs, less than the allocation."""
PREFIX: Final = "dragoon-probe-"
"""Of the scratch cgroups' names."""
_PARENTS: Final = ("kubepods.slice", "kubepods")

Allocate = Callable[[Gpu, Path, int], bool]
"""Whether a process in a cgroup gets so many bytes of a GPU. Raises HardwareError if that cannot
be tried."""


class CapProbe:
    """Tries a cap on a scratch cgroup beside the pods. Blocks for the time of two CUDA contexts.

    A try that told something is not repeated while the driver stays the same; one that could not be
    made is made again the next time.
    """

    def __init__(self, limits: MemoryLimits, cgroup_root: Path, allocate: Allocate) -> None:
        self._limits = limits
        self._root = cgroup_root
        self._allocate = allocate
        self._known: tuple[str | None, str] | None = None
        self._obstacle = ""

    def __call__(self, inventory: Inventory) -> str:
        """Why caps do not work; empty where one refused."""
        if self._known is not None and self._known[0] == inventory.driver_version:
            return self._known[1]
        told = self._tell(inventory)
        if told is None:
            return self._obstacle
        self._known = (inventory.driver_version, told)
        return told

    def _tell(self, inventory: Inventory) -> str | None:
        """What a try told, None (and an obstacle) when there was none."""
        card = next((gpu for gpu in inventory.gpus if not (gpu.mig and gpu.mig.enabled)), None)
        told = None
        if not (self._root / "cgroup.controllers").is_file():
            self._obstacle = f"{self._root} is no cgroup v2 tree, which memory caps need"
        elif card is None:
            self._obstacle = "there is no GPU outside MIG mode that a cap could be tried on"
        else:
            self._obstacle = (
                f"GPU {card.address} has no {ALLOCATION >> 20} MiB free to try a memory cap with"
            )
            try:
                with _scratch(self._root) as folder:
                    told = self._try(card, folder)
            except DragoonError as error:
                self._obstacle = f"a memory cap could not be tried on GPU {card.address}: {error}"
            except OSError as error:
                self._obstacle = f"a cgroup could not be made in {self._root}: {error}"
        return told

    def _try(self, card: Gpu, folder: Path) -> str | None:
        """What a try told: nothing in its way, a reason, or None when it told nothing."""
        leaf = folder / "leaf"
        if not self._allocate(card, leaf, ALLOCATION):
            return None
        self._limits.set(card.address, folder, MemoryLimit(CAP))
        try:
            refused = not self._allocate(card, leaf, ALLOCATION)
        finally:
            self._limits.set(card.address, folder, MemoryLimit())
        if refused:
            return ""
        return (
            "a memory cap did not hold for a process in a cgroup below: the driver counts each "
            "cgroup for itself (load it with RmMemacctMode=2, and delegate the dmem controller)"
        )


@contextmanager
def _scratch(root: Path) -> Iterator[Path]:
    """A cgroup with one below it, where those of pods are; what a killed probe left is removed."""
    parent = next((root / name for name in _PARENTS if (root / name).is_dir()), root)
    for left in parent.glob(f"{PREFIX}*"):
        _remove(left)
    folder = parent / f"{PREFIX}{os.getpid()}"
    (folder / "leaf").mkdir(parents=True)
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """A cgroup that somebody is in stays."""
    with suppress(OSError):
        (folder / "leaf").rmdir()
    with suppress(OSError):
        folder.rmdir()
