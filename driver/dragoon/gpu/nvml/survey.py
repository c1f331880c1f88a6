"""What else a card and its driver can tell, read only: MIG profiles and optional symbols."""

from functools import partial

import pynvml

from dragoon.gpu.model import MigProfile
from dragoon.gpu.nvml.asking import ABSENT, Asking, room

# Newer symbols of the library that features of Dragoon depend on.
OPTIONAL_SYMBOLS = (
    "nvmlDeviceGetAddressingMode",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetGpuFabricInfo_v4",
    "nvmlDeviceGetGpuInstanceProfileInfoV",
    "nvmlDeviceGetHandleByUUIDV",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetMemoryLimits_v1",
    "nvmlDeviceGetNumaNodeId",
    "nvmlDeviceGetNvLinkInfo",
    "nvmlDeviceGetPdi",
    "nvmlDeviceGetPlatformInfo",
    "nvmlDeviceGetRemappedRows_v2",
    "nvmlDeviceGetRepairStatus",
    "nvmlDeviceReadWritePRM_v1",
    "nvmlDeviceSetMemoryLimits_v1",
    "nvmlEventSetWait_v3",
    "nvmlGpuInstanceGetComputeInstanceById",
    "nvmlSystemEventSetCreate",
    "nvmlSystemEventSetWait",
    "nvmlSystemRegisterEvents",
)
_NO_SUCH_PROFILE = ABSENT | {pynvml.NVML_ERROR_INVALID_ARGUMENT}


def read_symbols() -> dict[str, bool]:
    """Which optional symbols the library has; asks for their addresses only."""
    return {symbol: hasattr(pynvml.nvmlLib, symbol) for symbol in OPTIONAL_SYMBOLS}


def read_mig_profiles(handle: object, asking: Asking) -> tuple[MigProfile, ...]:
    """Every GPU instance profile the card offers (nvmlDeviceGetGpuInstanceProfileInfoV)."""
    profiles = (
        _read_profile(handle, asking, number)
        for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)
    )
    return tuple(profile for profile in profiles if profile is not None)


def read_memory_node(handle: object, asking: Asking) -> int | None:
    """The NUMA node that the card's own memory is, on Grace systems."""
    return asking.ask("NUMA node of its memory", partial(pynvml.nvmlDeviceGetNumaNodeId, handle))


def _read_profile(handle: object, asking: Asking, number: int) -> MigProfile | None:
    info, _ = asking.answer(
        "MIG profile",
        partial(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, number),
        normal=_NO_SUCH_PROFILE,
    )
    if info is None:
        return None
    name = asking.ask("MIG profile name", lambda: info.name)
    places = asking.ask("MIG placements", partial(_placements, handle, info.id))
    if name is None or not places:
        return None
    return MigProfile(
        name=name.removeprefix("MIG "),
        number=number,
        identity=info.id,
        slices=info.sliceCount,
        instances=info.instanceCount,
        memory_mib=info.memorySizeMB or None,
        multiprocessors=info.multiprocessorCount or None,
        starts=tuple(start for start, _ in places),
        size=places[0][1],
    )


def _placements(handle: object, identity: int) -> list[tuple[int, int]]:
    count = pynvml.c_uint(0)
    ask = partial(pynvml.nvmlDeviceGetGpuInstancePossiblePlacements, handle, identity)
    ask(None, pynvml.byref(count))
    array = (pynvml.c_nvmlGpuInstancePlacement_t * room(count.value))()
    ask(pynvml.byref(array), pynvml.byref(count))
    found = sorted((place.start, place.size) for place in array[: count.value])
    if not all(size for _, size in found):
        raise ValueError("a placement of no memory slice")
    return found
