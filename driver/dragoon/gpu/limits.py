"""A cap on GPU memory per cgroup, as the driver keeps it (nvmlDeviceSetMemoryLimits_v1)."""

from dataclasses import dataclass

from dragoon.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Bytes on one card for one cgroup.

    hard is the cap (None: no cap); soft is the part that the pressure of others cannot take.
    used is only told, never set. The CUDA context counts inside the cap. Raises InvalidInputError
    for sizes that make no sense.
    """

    hard: int | None = None
    soft: int = 0
    used: int = 0

    def __post_init__(self) -> None:
        if self.soft < 0 or (self.hard is not None and self.hard < self.soft):
            raise InvalidInputError(
                f"memory limit: found soft {self.soft} and hard {self.hard} bytes, "
                "allowed: soft from 0 up to hard"
            )
