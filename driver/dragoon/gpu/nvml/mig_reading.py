"""One look at the MIG side of one card: mode, profiles, and every instance by walking profiles.

MIG device handles exist only for complete pairs of instances: they never show a GPU instance that
has lost its other half (or never had one) and still blocks its placement.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pynvml

from dragoon.errors import HardwareError
from dragoon.gpu.capabilities import instance_node
from dragoon.gpu.mig import ComputeInstance, MigCard, MigInstance
from dragoon.gpu.model import MigMode, MigProfile, PciAddress, Placement
from dragoon.gpu.nvml.asking import ABSENT, Asking, CardSilentError
from dragoon.gpu.nvml.handles import compute_instances, gpu_instances
from dragoon.gpu.nvml.refusals import refusal
from dragoon.gpu.nvml.survey import read_mig_profiles
from dragoon.gpu.pci import Roots

_SHARED = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
_NO_SUCH_PROFILE = ABSENT | {pynvml.NVML_ERROR_INVALID_ARGUMENT}


@dataclass(frozen=True, slots=True)
class Found:
    """An instance with the handles through which it was read."""

    instance: MigInstance
    handle: Any
    compute: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """A way to fill a GPU instance, or a part of it; most: how many of them fit."""

    identity: int
    slices: int
    most: int


def read_mode(handle: Any) -> MigMode | None:
    """Current and pending mode; None on a card without MIG."""
    try:
        current, pending = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError as error:
        if error.value in ABSENT:
            return None
        raise
    enabled = pynvml.NVML_DEVICE_MIG_ENABLE
    return MigMode(enabled=current == enabled, pending=pending == enabled)


def read_card(handle: Any, address: PciAddress) -> MigCard | None:
    """What the card offers; None when it has no MIG.

    Raises HardwareError when a part cannot be read: half a list would hide instances.
    """
    mode = read_mode(handle)
    if mode is None:
        return None
    asking = Asking()
    try:
        profiles = read_mig_profiles(handle, asking)
    except CardSilentError as silent:
        code = getattr(silent.__cause__, "value", pynvml.NVML_ERROR_GPU_IS_LOST)
        raise refusal(f"GPU {address}", code) from silent
    if asking.problems:
        raise HardwareError(
            f"GPU {address}: its MIG profiles cannot be read: {'; '.join(asking.problems)}",
            retryable=True,
        )
    return MigCard(
        address=address,
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        mode=mode,
        resetless=_is_resetless(handle),
        profiles=profiles,
    )


def read_instances(handle: Any, card: MigCard, roots: Roots) -> tuple[Found, ...]:
    """Every GPU instance of the card, by placement."""
    if not card.mode.enabled:
        return ()
    minor = _minor(handle)
    found = [
        _read(instance, card, profile, minor, roots)
        for profile in card.profiles
        for instance in gpu_instances(handle, profile.identity, profile.instances)
    ]
    return tuple(sorted(found, key=lambda one: one.instance.placement))


def compute_profiles(instance: Any) -> Iterator[ComputeProfile]:
    """The compute instance profiles of a GPU instance."""
    asking = Asking()
    for number in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        ask = partial(
            pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo, instance, number, _SHARED
        )
        info, code = asking.answer("compute profile", ask, normal=_NO_SUCH_PROFILE)
        if info is not None:
            yield ComputeProfile(info.id, info.sliceCount, info.instanceCount)
        elif code not in _NO_SUCH_PROFILE:
            raise HardwareError("; ".join(asking.problems), retryable=True)


def _read(
    handle: Any, card: MigCard, profile: MigProfile, minor: int | None, roots: Roots
) -> Found:
    info = pynvml.nvmlGpuInstanceGetInfo(handle)
    pairs = [
        (compute, _compute(compute, kind.slices, minor, info.id, roots))
        for kind in compute_profiles(handle)
        for compute in compute_instances(handle, kind.identity, kind.most)
    ]
    pairs.sort(key=lambda pair: pair[1].identity)
    instance = MigInstance(
        parent=card.address,
        parent_uuid=card.uuid,
        parent_minor=minor,
        profile=profile,
        placement=Placement(info.placement.start, info.placement.size),
        identity=info.id,
        compute=tuple(one for _, one in pairs),
        node=instance_node(roots, minor, info.id),
    )
    return Found(instance, handle, tuple(compute for compute, _ in pairs))


def _compute(
    handle: Any, slices: int, minor: int | None, gpu_instance: int, roots: Roots
) -> ComputeInstance:
    info = pynvml.nvmlComputeInstanceGetInfo(handle)
    return ComputeInstance(
        identity=info.id,
        uuid=str(pynvml.nvmlDeviceGetUUID(info.device)),  # the handle of the MIG device
        slices=slices,
        node=instance_node(roots, minor, gpu_instance, info.id),
    )


def _minor(handle: Any) -> int | None:
    try:
        return int(pynvml.nvmlDeviceGetMinorNumber(handle))
    except pynvml.NVMLError as error:
        if error.value in ABSENT:
            return None
        raise


def _is_resetless(handle: Any) -> bool:
    (field,) = pynvml.nvmlDeviceGetFieldValues(
        handle, [pynvml.NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED]
    )
    if field.nvmlReturn == pynvml.NVML_SUCCESS:
        return bool(field.value.uiVal)
    # Drivers that do not know the question: it came with Hopper.
    return bool(pynvml.nvmlDeviceGetArchitecture(handle) >= pynvml.NVML_DEVICE_ARCH_HOPPER)
