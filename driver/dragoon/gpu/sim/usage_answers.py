"""NVML's C functions about use: processes, caps per cgroup, and what a MIG device says of itself.

`USAGE_ANSWERS` take any device handle, `MIG_DEVICE_ANSWERS` those of MIG devices only. The first
argument is the state, the second what the handle stands for.
"""

from collections.abc import Callable
from typing import Any

from dragoon.gpu.sim.accounting import cap_of, used_by, with_cap
from dragoon.gpu.sim.codes import (
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    SUCCESS,
    put_number,
    put_text,
    target,
)
from dragoon.gpu.sim.handles import Kind, Thing
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.occupants import ProcessState
from dragoon.gpu.sim.partitioning import compute_instance_with, profile_with
from dragoon.gpu.sim.state import State

LIMIT_SYMBOLS = frozenset({"nvmlDeviceGetMemoryLimits_v1", "nvmlDeviceSetMemoryLimits_v1"})
_MIB = 1 << 20
_NO_INSTANCE = 0xFFFFFFFF  # NVML_GPU_INSTANCE_ID_ANY


def _is_mig_device(_state: State, thing: Thing, reference: Any) -> int:
    return put_number(reference, int(thing.kind is Kind.MIG_DEVICE))


def _compute_processes(state: State, thing: Thing, count: Any, array: Any) -> int:
    found = _processes(state, thing)
    room = target(count).value
    target(count).value = len(found)
    if room < len(found):
        return INSUFFICIENT_SIZE
    for place, process in zip(array or (), found, strict=False):
        place.pid, place.usedGpuMemory = process.pid, process.memory
        place.gpuInstanceId = _id(process.gpu_instance)
        place.computeInstanceId = _id(process.compute_instance)
    return SUCCESS


def _no_processes(_state: State, _thing: Thing, count: Any, _array: Any) -> int:
    target(count).value = 0
    return SUCCESS


def _processes(state: State, thing: Thing) -> list[ProcessState]:
    listed = [process for process in state.cards[thing.slot].processes if process.listed]
    if thing.kind is Kind.DEVICE:
        return listed
    parent, device = compute_instance_with(state, thing.slot, thing.serial)
    inside = (parent.identity, device.identity)
    return [p for p in listed if (p.gpu_instance, p.compute_instance) == inside]


def _id(identity: int | None) -> int:
    return _NO_INSTANCE if identity is None else identity


def _mig_uuid(state: State, thing: Thing, buffer: Any, size: Any) -> int:
    _, device = compute_instance_with(state, thing.slot, thing.serial)
    return put_text(buffer, size, device.uuid.encode())


def _mig_name(state: State, thing: Thing, buffer: Any, size: Any) -> int:
    parent, _ = compute_instance_with(state, thing.slot, thing.serial)
    card = state.machine.cards[thing.slot]
    profile = profile_with(card, parent.profile)
    return put_text(buffer, size, f"{card.product} MIG {profile.name}".encode())


def _mig_memory(state: State, thing: Thing, reference: Any) -> int:
    parent, _ = compute_instance_with(state, thing.slot, thing.serial)
    size = profile_with(state.machine.cards[thing.slot], parent.profile).memory_mib
    if size is None:
        return NOT_SUPPORTED
    info = target(reference)
    info.total = size * _MIB
    info.used = sum(process.memory for process in _processes(state, thing))
    info.free = info.total - info.used
    return SUCCESS


def _gpu_instance_id(state: State, thing: Thing, reference: Any) -> int:
    return put_number(reference, compute_instance_with(state, thing.slot, thing.serial)[0].identity)


def _compute_instance_id(state: State, thing: Thing, reference: Any) -> int:
    return put_number(reference, compute_instance_with(state, thing.slot, thing.serial)[1].identity)


USAGE_ANSWERS: dict[str, Callable[..., int]] = {
    "nvmlDeviceGetComputeRunningProcesses_v3": _compute_processes,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": _no_processes,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": _no_processes,
    "nvmlDeviceIsMigDeviceHandle": _is_mig_device,
}
MIG_DEVICE_ANSWERS: dict[str, Callable[..., int]] = {
    "nvmlDeviceGetComputeInstanceId": _compute_instance_id,
    "nvmlDeviceGetGpuInstanceId": _gpu_instance_id,
    "nvmlDeviceGetMemoryInfo": _mig_memory,
    "nvmlDeviceGetName": _mig_name,
    "nvmlDeviceGetUUID": _mig_uuid,
}


class LimitAnswers:
    """The functions of nvmlDeviceSet/GetMemoryLimits_v1. A MIG device has no caps."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware

    def table(self) -> dict[str, Callable[..., int]]:
        """By C symbol; as in USAGE_ANSWERS."""
        return {
            "nvmlDeviceGetMemoryLimits_v1": self._get,
            "nvmlDeviceSetMemoryLimits_v1": self._set,
        }

    def _get(self, state: State, thing: Thing, reference: Any) -> int:
        limits = target(reference)
        if thing.kind is not Kind.DEVICE:
            return NOT_SUPPORTED
        if limits.nameSpace is None:
            return INVALID_ARGUMENT
        cgroup = _path(limits)
        cap = cap_of(state, thing.slot, cgroup)
        limits.softLimit, limits.hardLimit = cap.soft, cap.hard
        limits.currentUsed = used_by(state, thing.slot, cgroup)
        return SUCCESS

    def _set(self, _state: State, thing: Thing, reference: Any) -> int:
        limits = target(reference)
        if thing.kind is not Kind.DEVICE:
            return NOT_SUPPORTED
        if limits.nameSpace is None:
            return INVALID_ARGUMENT
        self._hardware.change(
            lambda state: with_cap(
                state,
                thing.slot,
                _path(limits),
                soft=limits.softLimit,
                hard=limits.hardLimit,
            )
        )
        return SUCCESS


def _path(limits: Any) -> str:
    # pynvml's structs give text for bytes.
    return str(limits.nameSpace).rstrip("/") or "/"
