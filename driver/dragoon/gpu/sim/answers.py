"""What one card answers: NVML's C functions whose first argument is a device handle.

Each function takes a `View` in place of the handle and the caller's other arguments, writes into
the caller's memory and returns an NVML code. Names of the C symbols are in `DEVICE_ANSWERS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoon.gpu.model import MigProfile, PciAddress
from dragoon.gpu.sim.codes import (
    ARGUMENT_VERSION_MISMATCH,
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    SUCCESS,
    number,
    put_number,
    put_text,
    target,
)
from dragoon.gpu.sim.machine import Card
from dragoon.gpu.sim.partitioning import is_resetless
from dragoon.gpu.sim.state import CardState, State
from dragoon.gpu.words import ARCHITECTURES, BRANDS, number_of

_MIB = 1 << 20
_MEMORY_V2 = 0x02000028
_PROFILE_V2 = 0x02000098
_MOST_PROFILES = 0x12  # NVML_GPU_INSTANCE_PROFILE_COUNT
_SPEED_OF_LINK, _SPEED_COMMON = 164, 90  # NVML_FI_DEV_NVLINK_GET_SPEED, ..._SPEED_MBPS_COMMON
_RESETLESS = 184  # NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED
_UNSIGNED_INT = 1  # NVML_VALUE_TYPE_UNSIGNED_INT
_RECOVERY = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION


@dataclass(frozen=True, slots=True)
class View:
    """One card of one consistent state; garbled: text answers are not UTF-8."""

    state: State
    slot: int
    garbled: bool = False

    @property
    def card(self) -> Card:
        return self.state.machine.cards[self.slot]

    @property
    def now(self) -> CardState:
        return self.state.cards[self.slot]

    def text(self, text: str) -> bytes:
        return b"\xff\xfe" if self.garbled else text.encode()


def _name(view: View, buffer: Any, size: Any) -> int:
    return put_text(buffer, size, view.text(view.card.product))


def _uuid(view: View, buffer: Any, size: Any) -> int:
    return put_text(buffer, size, view.text(view.now.uuid))


def _pci_info(view: View, reference: Any) -> int:
    address = view.state.address(view.slot)
    return put_address(target(reference), address, view.text(f"{address.domain:08x}"))


def put_address(info: Any, address: PciAddress, domain: bytes) -> int:
    """Writes a nvmlPciInfo_t. domain: its text in eight hexadecimal digits."""
    info.domain, info.bus, info.device = address.domain, address.bus, address.device
    tail = f":{address.bus:02X}:{address.device:02X}.0".encode()
    info.busIdLegacy = domain[-4:] + tail
    info.busId = domain + tail
    return SUCCESS


def _architecture(view: View, reference: Any) -> int:
    return put_number(reference, number_of(view.card.architecture or "", ARCHITECTURES))


def _brand(view: View, reference: Any) -> int:
    return put_number(reference, number_of(view.card.brand or "", BRANDS))


def _minor(view: View, reference: Any) -> int:
    return put_number(reference, view.state.minor(view.slot))


def _memory_node(view: View, reference: Any) -> int:
    return put_number(reference, view.card.gpu_memory_node)


def _compute_capability(view: View, major: Any, minor: Any) -> int:
    if view.card.compute_capability is None:
        return NOT_SUPPORTED
    target(major).value, target(minor).value = view.card.compute_capability
    return SUCCESS


def _memory(view: View, reference: Any) -> int:
    if view.card.memory_mib is None:
        return NOT_SUPPORTED
    info = target(reference)
    info.total = view.card.memory_mib * _MIB
    info.used = sum(process.memory for process in view.now.processes)
    info.free = info.total - info.used
    return SUCCESS


def _memory_v2(view: View, reference: Any) -> int:
    info = target(reference)
    if info.version != _MEMORY_V2:
        return ARGUMENT_VERSION_MISMATCH
    info.reserved = 0
    return _memory(view, reference)


def _mig_mode(view: View, current: Any, pending: Any) -> int:
    if not view.card.mig:
        return NOT_SUPPORTED
    target(current).value = int(view.now.mig_enabled)
    target(pending).value = int(view.now.mig_pending)
    return SUCCESS


def _most_mig_devices(view: View, reference: Any) -> int:
    return put_number(reference, max((p.instances for p in view.card.mig), default=0))


def _profile_info(view: View, profile: Any, reference: Any) -> int:
    found, code = _profile(view, profile)
    if found is None:
        return code
    info = target(reference)
    info.id = found.identity
    info.isP2pSupported = 0
    info.sliceCount = found.slices
    info.instanceCount = found.instances
    info.multiprocessorCount = found.multiprocessors or 0
    info.memorySizeMB = found.memory_mib or 0
    return SUCCESS


def _profile_info_v(view: View, profile: Any, reference: Any) -> int:
    info = target(reference)
    if info.version != _PROFILE_V2:
        return ARGUMENT_VERSION_MISMATCH
    found, code = _profile(view, profile)
    if found is None:
        return code
    info.name = view.text(f"MIG {found.name}")
    return _profile_info(view, profile, reference)


def _profile(view: View, profile: Any) -> tuple[MigProfile | None, int]:
    if not 0 <= number(profile) < _MOST_PROFILES:
        return None, INVALID_ARGUMENT
    for found in view.card.mig:
        if found.number == number(profile):
            return found, SUCCESS
    return None, NOT_SUPPORTED


def _placements(view: View, profile_id: Any, array: Any, count: Any) -> int:
    if not view.card.mig:
        return NOT_SUPPORTED
    found = [p for p in view.card.mig if p.identity == number(profile_id)]
    if not found:
        return INVALID_ARGUMENT
    starts, room = found[0].starts, target(count).value
    target(count).value = len(starts)
    if array is None:
        return SUCCESS
    if room < len(starts):
        return INSUFFICIENT_SIZE
    for place, start in zip(target(array), starts, strict=False):
        place.start, place.size = start, found[0].size
    return SUCCESS


def _field_values(view: View, count: Any, reference: Any) -> int:
    for value in target(reference)[: number(count)]:
        found = _field(view, value.fieldId, value.scopeId)
        value.nvmlReturn = NOT_SUPPORTED if found is None else SUCCESS
        value.valueType = _UNSIGNED_INT
        value.value.uiVal = found or 0
    return SUCCESS


def _field(view: View, field: int, scope: int) -> int | None:
    links = len(view.card.wires)
    if field == _RESETLESS and view.card.mig:
        return int(is_resetless(view.card))
    if field == _RECOVERY:
        return view.now.condition.recovery
    if field == _SPEED_COMMON and links:
        return view.card.link_mb_per_second
    if field == _SPEED_OF_LINK and scope < links:
        return view.card.link_mb_per_second if view.state.link_is_up(view.slot, scope) else 0
    return None


DEVICE_ANSWERS: dict[str, Callable[..., int]] = {
    "nvmlDeviceGetArchitecture": _architecture,
    "nvmlDeviceGetBrand": _brand,
    "nvmlDeviceGetCudaComputeCapability": _compute_capability,
    "nvmlDeviceGetFieldValues": _field_values,
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2": _placements,
    "nvmlDeviceGetGpuInstanceProfileInfo": _profile_info,
    "nvmlDeviceGetGpuInstanceProfileInfoV": _profile_info_v,
    "nvmlDeviceGetMaxMigDeviceCount": _most_mig_devices,
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetMemoryInfo_v2": _memory_v2,
    "nvmlDeviceGetMigMode": _mig_mode,
    "nvmlDeviceGetMinorNumber": _minor,
    "nvmlDeviceGetName": _name,
    "nvmlDeviceGetNumaNodeId": _memory_node,
    "nvmlDeviceGetPciInfo_v3": _pci_info,
    "nvmlDeviceGetUUID": _uuid,
}
