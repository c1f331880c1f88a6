"""Who uses a card, and the driver's caps on GPU memory per cgroup, through NVML."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml

from dragoon.errors import HardwareError, StateError
from dragoon.gpu.faults import FeatureMissingError
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.mig import GpuProcess
from dragoon.gpu.model import PciAddress
from dragoon.gpu.nvml.asking import ABSENT
from dragoon.gpu.nvml.handles import Session, card_handle
from dragoon.gpu.nvml.refusals import refusals
from dragoon.gpu.pci import Roots

_LISTS = (
    pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
    pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
    pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
)
_NO_LIMIT = pynvml.NVML_DEVICE_MEMORY_LIMIT_MAX


def read_processes(handle: Any, roots: Roots) -> tuple[GpuProcess, ...]:
    """Every process that uses the card of that handle, by pid."""
    found: set[GpuProcess] = set()
    for ask in _LISTS:
        try:
            listed = ask(handle)
        except pynvml.NVMLError as error:
            if error.value in ABSENT:
                continue
            raise
        found.update(_process(one, roots) for one in listed)
    return tuple(sorted(found, key=lambda one: (one.pid, one.gpu_instance or 0)))


def _process(listed: Any, roots: Roots) -> GpuProcess:
    return GpuProcess(
        pid=listed.pid,
        used_bytes=listed.usedGpuMemory,
        gpu_instance=_instance(listed.gpuInstanceId, pynvml.NVML_GPU_INSTANCE_ID_ANY),
        compute_instance=_instance(listed.computeInstanceId, pynvml.NVML_COMPUTE_INSTANCE_ID_ANY),
        name=_name(roots, listed.pid),
    )


class NvmlProcesses:
    """Implements `gpu.port.Processes`."""

    def __init__(self, session: Session, roots: Roots) -> None:
        self._session = session
        self._roots = roots

    def __call__(self, address: PciAddress) -> tuple[GpuProcess, ...]:
        """See `gpu.port.Processes`."""
        with self._session():
            handle = card_handle(address)
            with refusals(f"GPU {address}: list processes"):
                return read_processes(handle, self._roots)


class NvmlMemoryLimits:
    """Implements `gpu.port.MemoryLimits`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, address: PciAddress, cgroup: Path) -> MemoryLimit:
        """See `gpu.port.MemoryLimits`."""
        with self._session():
            return _get(card_handle(address), address, cgroup)

    def set(self, address: PciAddress, cgroup: Path, limit: MemoryLimit) -> MemoryLimit:
        """See `gpu.port.MemoryLimits`."""
        limits = pynvml.c_nvmlSetMemoryLimits_v1_t()
        limits.nameSpace = _folder(cgroup)
        limits.softLimit = limit.soft
        limits.hardLimit = _NO_LIMIT if limit.hard is None else limit.hard
        what = f"GPU {address}: limit memory of {cgroup}"
        with self._session():
            handle = card_handle(address)
            with _limits_refusals(what):
                pynvml.nvmlDeviceSetMemoryLimits_v1(handle, limits)
            found = _get(handle, address, cgroup)
        if (found.hard, found.soft) != (limit.hard, limit.soft):
            raise HardwareError(f"{what}: set {limit}, and it reads back as {found}")
        return found


def _get(handle: Any, address: PciAddress, cgroup: Path) -> MemoryLimit:
    limits = pynvml.c_nvmlGetMemoryLimits_v1_t()
    limits.nameSpace = _folder(cgroup)
    with _limits_refusals(f"GPU {address}: read the memory limit of {cgroup}"):
        pynvml.nvmlDeviceGetMemoryLimits_v1(handle, limits)
    return MemoryLimit(
        hard=None if limits.hardLimit == _NO_LIMIT else limits.hardLimit,
        soft=limits.softLimit,
        used=limits.currentUsed,
    )


@contextmanager
def _limits_refusals(what: str) -> Iterator[None]:
    try:
        with refusals(what):
            yield
    except FeatureMissingError as error:
        raise FeatureMissingError(
            error.message,
            hint="caps per cgroup need driver r615 or later, cgroup v2, and a card not in MIG mode",
        ) from error


def _folder(cgroup: Path) -> bytes:
    if not (cgroup.is_absolute() and cgroup.is_dir()):
        raise StateError(f"cgroup: found {str(cgroup)!r}, allowed: the full path of its folder")
    return os.fsencode(cgroup)


def _instance(identity: int, nothing: int) -> int | None:
    return None if identity == nothing else identity


def _name(roots: Roots, pid: int) -> str | None:
    try:
        text = (roots.proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.strip() or None
