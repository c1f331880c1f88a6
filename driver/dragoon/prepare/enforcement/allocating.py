"""Allocating memory of a GPU in a process of its own, to see whether a cap refuses it.

Run as a program, this module moves itself into a cgroup before it loads CUDA, allocates, and ends
with a status that says how it went. Calls and numbers are those of the CUDA driver API (cuda.h).
Not yet run on hardware.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from dragoon.errors import HardwareError
from dragoon.gpu.model import Gpu

ALLOCATED: Final = 0
REFUSED: Final = 40
FAILED: Final = 41
_OUT_OF_MEMORY: Final = 2  # CUDA_ERROR_OUT_OF_MEMORY
_TIMEOUT_S: Final = 60.0


def allocate(gpu: Gpu, cgroup: Path, size: int) -> bool:
    """Whether a process in `cgroup` gets `size` bytes of a GPU. Blocks for some seconds.

    Raises HardwareError when that cannot be tried.
    """
    command = (sys.executable, "-m", __name__, str(gpu.address), str(cgroup), str(size))
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HardwareError(f"GPU {gpu.address}: allocating could not be tried: {error}") from error
    if done.returncode not in {ALLOCATED, REFUSED}:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise HardwareError(f"GPU {gpu.address}: allocating could not be tried: {said}")
    return done.returncode == ALLOCATED


def main(address: str, cgroup: str, size: int) -> int:
    """The program. A context that does not fit under the cap is refused memory, too."""
    try:
        (Path(cgroup) / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    return _status(_allocated(cuda, address, size))


def _allocated(cuda: Any, address: str, size: int) -> int:
    """The first CUDA error on the way to the memory, 0 if there is none."""
    device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    return int(
        cuda.cuInit(0)
        or cuda.cuDeviceGetByPCIBusId(ctypes.byref(device), address.encode("ascii"))
        or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        or cuda.cuCtxSetCurrent(context)
        or cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
    )


def _status(code: int) -> int:
    if code not in {0, _OUT_OF_MEMORY}:
        sys.stderr.write(f"CUDA error {code}\n")
        return FAILED
    return ALLOCATED if code == 0 else REFUSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
