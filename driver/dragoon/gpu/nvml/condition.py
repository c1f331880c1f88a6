"""How well each card is, through NVML. Every question is guarded on its own."""

from collections.abc import Mapping
from functools import partial
from operator import itemgetter

import pynvml

from dragoon.gpu.condition import Condition, Recovery
from dragoon.gpu.model import PciAddress
from dragoon.gpu.nvml.asking import Asking, CardSilentError
from dragoon.gpu.nvml.card import read_address
from dragoon.gpu.nvml.handles import Session
from dragoon.gpu.nvml.library import Library
from dragoon.gpu.nvml.walking import Patience, Walk

_RECOVERIES = {
    pynvml.NVML_GPU_RECOVERY_ACTION_NONE: Recovery.NONE,
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: Recovery.GPU_RESET,
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: Recovery.NODE_REBOOT,
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P: Recovery.DRAIN_P2P,
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: Recovery.DRAIN_AND_RESET,
    pynvml.NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN: Recovery.RECOVER_IMEX,
    pynvml.NVML_GPU_RECOVERY_ACTION_BUS_RESET: Recovery.BUS_RESET,
    pynvml.NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT: Recovery.SYSTEM_REBOOT,
}


class NvmlConditions:
    """Implements `gpu.port.Conditions`."""

    def __init__(self, library: Library, session: Session, patience: Patience) -> None:
        self._library = library
        self._session = session
        self._walk = Walk(library, _read, itemgetter(0), patience)

    def __call__(self) -> Mapping[PciAddress, Condition]:
        """See `gpu.port.Conditions`."""
        with self._session():
            walked = self._walk(self._library.count())
        silent = Condition(silent=self._walk.why_silent)
        hanging = {address: silent for address in walked.silent if address is not None}
        return dict(walked.answers) | hanging


def _read(index: int) -> tuple[PciAddress, Condition] | None:
    asking = Asking()
    try:
        handle = asking.must("handle", partial(pynvml.nvmlDeviceGetHandleByIndex, index))
        address = asking.must("PCI address", partial(read_address, handle))
        return address, _condition(handle, asking)
    except CardSilentError:
        return None


def _condition(handle: object, asking: Asking) -> Condition:
    rows = asking.ask("remapped rows", partial(pynvml.nvmlDeviceGetRemappedRows, handle))
    pages = asking.ask(
        "pages to retire", partial(pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
    )
    repairs = asking.ask("repairs", partial(pynvml.nvmlDeviceGetRepairStatus, handle))
    return Condition(
        recovery=asking.ask("recovery action", partial(_recovery, handle)),
        uncorrected=asking.ask("uncorrected memory errors", partial(_uncorrected, handle)),
        remap_pending=None if rows is None else bool(rows[2]),
        remap_failed=None if rows is None else bool(rows[3]),
        pages_pending=None if pages is None else pages == pynvml.NVML_FEATURE_ENABLED,
        repair_pending=None if repairs is None else any(repairs),
        problems=asking.problems,
    )


def _recovery(handle: object) -> Recovery:
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(value.nvmlReturn)
    return _RECOVERIES.get(value.value.uiVal, Recovery.OTHER)


def _uncorrected(handle: object) -> int:
    return int(
        pynvml.nvmlDeviceGetTotalEccErrors(
            handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        )
    )
