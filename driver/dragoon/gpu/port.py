"""How the rest of Dragoon asks about GPUs.

Implemented by `gpu.nvml.NvmlGpus` (over the real or the simulated library) and by
`gpu.port.FixedGpus` for tests of the layers above.
"""

from dataclasses import dataclass
from typing import Protocol

from dragoon.gpu.model import Inventory


class Gpus(Protocol):
    """The GPUs of this node.

    Calls block (NVML may take seconds on a busy or sick card): never call them on the event loop.
    They may be called from several threads.
    """

    def inventory(self) -> Inventory:
        """Looks at all cards now.

        A card that fails is in `lost` or has `problems`; it never costs the others. Raises
        DriverMissingError when there is no driver, HardwareError when the library as a whole
        fails.
        """
        ...

    def close(self) -> None:
        """Releases the library. Idempotent."""
        ...


@dataclass
class FixedGpus:
    """A fake that answers with what it was given; assign `found` to change the hardware."""

    found: Inventory

    def inventory(self) -> Inventory:
        return self.found

    def close(self) -> None:
        """Nothing to release."""
