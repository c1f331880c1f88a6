"""Choosing and keeping what every container with a real GPU needs."""

import threading
from pathlib import Path
from typing import Final

from dragoon.gpu.model import Inventory
from dragoon.prepare.cdi import Edits
from dragoon.prepare.driver_files import driver_edits
from dragoon.prepare.host_root import HostRoot
from dragoon.prepare.toolkit import Run, run_program, toolkit_edits

_OUTSIDE: Final = HostRoot()


class CommonEdits:
    """Asks NVIDIA's toolkit where it is installed, else looks for the driver's files itself.

    An answer is kept until driver or tool change: never by age, since NVIDIA's own driver handed
    out paths of a replaced driver for five minutes (its issue 1144). A failure is not kept.
    driver_root and dev_root are paths of the node.
    """

    def __init__(
        self,
        driver_root: Path,
        dev_root: Path,
        *,
        toolkit: Path | None,
        host: HostRoot = _OUTSIDE,
        run: Run = run_program,
    ) -> None:
        self._driver_root = host.here(driver_root)
        self._dev_root = host.here(dev_root)
        self._host = host
        self._toolkit = toolkit
        self._run = run
        self._lock = threading.Lock()
        self._kept: tuple[object, Edits] | None = None

    def __call__(self, inventory: Inventory) -> Edits:
        """The edits for the driver that was found. Blocks. Raises HardwareError or CdiError."""
        tool = self._toolkit if self._toolkit and self._toolkit.exists() else None
        key = (inventory.driver_version, tool and tool.stat().st_mtime_ns)
        with self._lock:
            if self._kept is None or self._kept[0] != key:
                self._kept = (key, self._find(tool, inventory))
            return self._kept[1]

    def _find(self, tool: Path | None, inventory: Inventory) -> Edits:
        if tool is None:
            found = driver_edits(self._driver_root, self._dev_root, inventory.driver_version)
        else:
            found = toolkit_edits(tool, self._driver_root, self._dev_root, self._run)
        return self._host.edits(found)
