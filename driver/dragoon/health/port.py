"""Where verdicts that last are kept, and the boot to which they belong."""

from dataclasses import dataclass
from typing import Protocol

from dragoon.errors import StateError


class Memory(Protocol):
    """One small file of this node. All of it blocks; failures are StateErrors."""

    def read(self) -> bytes | None:
        """What was written last, None if nothing was."""
        ...

    def write(self, data: bytes) -> None:
        """Replaces it whole; once this returned, a power cut does not forget it."""
        ...

    def boot_id(self) -> str:
        """What changes at every boot."""
        ...


@dataclass
class FakeMemory:
    """Keeps it in memory; assign to `boot` for a reboot, to `error` for a disk that fails."""

    data: bytes | None = None
    boot: str = "boot-1"
    error: StateError | None = None
    writes: int = 0

    def read(self) -> bytes | None:
        if self.error is not None:
            raise self.error
        return self.data

    def write(self, data: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.data = data
        self.writes += 1

    def boot_id(self) -> str:
        if self.error is not None:
            raise self.error
        return self.boot
