"""Handles of cards and instances, asked for anew by every call: no change leaves a stale one."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes import Array, byref, c_uint
from functools import partial
from typing import Any

import pynvml

from dragoon.errors import DeviceLostError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.nvml.asking import room
from dragoon.gpu.nvml.refusals import refusals
from dragoon.gpu.pci import BusCard

Session = Callable[[], AbstractContextManager[tuple[BusCard, ...]]]

_NOT_THERE = (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT)


def card_handle(address: PciAddress) -> Any:
    """The handle of the card at that address. Raises DeviceLostError when nothing is there."""
    with refusals(f"GPU {address}"):
        try:
            return pynvml.nvmlDeviceGetHandleByPciBusId(str(address))
        except pynvml.NVMLError as error:
            if error.value in _NOT_THERE:
                raise DeviceLostError(f"GPU {address}: the driver does not list it") from error
            raise


def gpu_instances(card: Any, profile: int, most: int) -> list[Any]:
    """The handles of the card's GPU instances of a profile, by the driver's id of it."""
    ask = partial(pynvml.nvmlDeviceGetGpuInstances, card, profile)
    return _listed(ask, pynvml.c_nvmlGpuInstance_t, most)


def compute_instances(instance: Any, profile: int, most: int) -> list[Any]:
    """The handles of a GPU instance's compute instances of a profile."""
    ask = partial(pynvml.nvmlGpuInstanceGetComputeInstances, instance, profile)
    return _listed(ask, pynvml.c_nvmlComputeInstance_t, most)


def _listed(ask: Callable[[Any, Any], int], kind: type[Any], most: int) -> list[Any]:
    # nvml.h: the caller's array must have room for all that the profile allows; it is not told.
    found: Array[Any] = (kind * room(most))()
    count = c_uint(most)
    ask(found, byref(count))
    return list(found[: count.value])
