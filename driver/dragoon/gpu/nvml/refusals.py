"""NVML's codes for what a card refuses -> errors in our words, with what to do about it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pynvml

from dragoon.errors import DeviceLostError, HardwareError
from dragoon.gpu.faults import (
    CardInUseError,
    FeatureMissingError,
    PermissionMissingError,
    PlacementTakenError,
    ResetRequiredError,
)
from dragoon.gpu.mig import GpuProcess
from dragoon.gpu.nvml.asking import NONSENSE

Users = Callable[[], tuple[GpuProcess, ...]]

_KINDS: dict[int, type[HardwareError]] = {
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: FeatureMissingError,
    pynvml.NVML_ERROR_GPU_IS_LOST: DeviceLostError,
    pynvml.NVML_ERROR_GPU_NOT_FOUND: DeviceLostError,
    pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES: PlacementTakenError,
    pynvml.NVML_ERROR_NOT_SUPPORTED: FeatureMissingError,
    pynvml.NVML_ERROR_NO_PERMISSION: PermissionMissingError,
    pynvml.NVML_ERROR_RESET_REQUIRED: ResetRequiredError,
}
# The card is busy with itself, answered too late, or lost an instance while it was looked at.
_PASSING = frozenset(
    {
        pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES,
        pynvml.NVML_ERROR_INVALID_STATE,
        pynvml.NVML_ERROR_NOT_FOUND,
        pynvml.NVML_ERROR_NOT_READY,
        pynvml.NVML_ERROR_TIMEOUT,
    }
)


def _nobody() -> tuple[GpuProcess, ...]:
    """For calls that _nobody can be in the way of."""
    return ()


@contextmanager
def refusals(what: str, users: Users = _nobody) -> Iterator[None]:
    """Turns NVML's errors of the block into ours; `what` names the card and what was tried.

    users tells who may be in the way. Raises DeviceLostError, or what `gpu.faults` has.
    """
    try:
        yield
    except pynvml.NVMLError as error:
        raise refusal(what, int(error.value), users) from error
    except NONSENSE as error:
        raise HardwareError(f"{what}: the driver's answer cannot be read ({error})") from error


def refusal(what: str, code: int, users: Users = _nobody) -> HardwareError:
    """The error that an NVML code means."""
    text = f"{what}: {pynvml.NVMLError(code)} (NVML code {code})"
    if code == pynvml.NVML_ERROR_IN_USE:
        found: tuple[GpuProcess, ...] = ()
        with suppress(pynvml.NVMLError, *NONSENSE):  # who it is only helps
            found = users()
        who = ", ".join(map(str, found)) or "nobody that the driver lists"
        return CardInUseError(f"{text}: in use by {who}", found)
    return _KINDS.get(code, HardwareError)(text, retryable=code in _PASSING)
