"""What one card answers about its own health, as in `answers`."""

from collections.abc import Callable
from typing import Any

from dragoon.gpu.sim.answers import View
from dragoon.gpu.sim.codes import NOT_SUPPORTED, SUCCESS, number, put_number, target

_UNCORRECTED_VOLATILE = (1, 0)  # NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC
# nvmlEventType*: double-bit ECC, XID, retirement and its failure, poison, fatal poison,
# unavailable, recovery action
_EVENT_TYPES = 0x2 | 0x8 | 0x400 | 0x800 | 0x1000 | 0x2000 | 0x4000 | 0x8000


def _remapped_rows(view: View, corrected: Any, broken: Any, pending: Any, failed: Any) -> int:
    condition = view.now.condition
    if condition.remap_pending is None or condition.remap_failed is None:
        return NOT_SUPPORTED
    target(corrected).value = 0
    target(broken).value = int(condition.remap_pending or condition.remap_failed)
    target(pending).value = int(condition.remap_pending)
    target(failed).value = int(condition.remap_failed)
    return SUCCESS


def _pages_pending(view: View, reference: Any) -> int:
    pending = view.now.condition.pages_pending
    return put_number(reference, None if pending is None else int(pending))


def _repair_status(view: View, reference: Any) -> int:
    pending = view.now.condition.repair_pending
    if pending is None:
        return NOT_SUPPORTED
    status = target(reference)
    status.bChannelRepairPending, status.bTpcRepairPending = int(pending), 0
    return SUCCESS


def _ecc_errors(view: View, kind: Any, counter: Any, reference: Any) -> int:
    if (number(kind), number(counter)) != _UNCORRECTED_VOLATILE:
        return NOT_SUPPORTED
    return put_number(reference, view.now.condition.uncorrected)


def _event_types(view: View, reference: Any) -> int:
    del view
    return put_number(reference, _EVENT_TYPES)


CONDITION_ANSWERS: dict[str, Callable[..., int]] = {
    "nvmlDeviceGetRemappedRows": _remapped_rows,
    "nvmlDeviceGetRepairStatus": _repair_status,
    "nvmlDeviceGetRetiredPagesPendingStatus": _pages_pending,
    "nvmlDeviceGetSupportedEventTypes": _event_types,
    "nvmlDeviceGetTotalEccErrors": _ecc_errors,
}
