"""Compiling what tests of enforcement load: a few lines of C of our own, nothing of HAMi-core."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

STAND_IN = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
    const char *path = getenv("CUDA_DEVICE_MEMORY_SHARED_CACHE");
    uint64_t memory = 0, cores = 0;
    int file = open(path ? path : "/tmp/cudevshr.cache", O_RDWR);
    if (file >= 0 && pread(file, &memory, 8, 1600) == 8 && pread(file, &cores, 8, 1728) == 8)
        fprintf(stderr, "limits %llu %llu\n", (unsigned long long)memory, (unsigned long long)cores);
    else
        fprintf(stderr, "no limits\n");
}
"""

FAKE_CUDA = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned flags) { return getenv("FAKE_NO_GPU") ? 100 : 0; }
int cuDeviceGetByPCIBusId(int *device, const char *id) {
    *device = 7;
    return strcmp(id, "0000:10:00.0") ? 101 : 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = (void *)context;
    return device == 7 ? 0 : 101;
}
int cuCtxSetCurrent(void *context) { return context ? 0 : 201; }
int cuMemAlloc_v2(uint64_t *pointer, size_t size) {
    const char *free_ = getenv("FAKE_FREE");
    *pointer = 1;
    return free_ && size > strtoull(free_, 0, 10) ? 2 : 0;
}
"""


def compiled(source: str, target: Path, *flags: str) -> Path:
    """A shared library. Without a compiler the test is skipped, but never in CI."""
    compiler = shutil.which("cc")
    if compiler is None:
        why = "no C compiler (cc) to build the stand-in library with"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    subprocess.run(
        [compiler or "cc", "-shared", "-fPIC", *flags, "-xc", "-", "-o", str(target)],
        input=source.encode(),
        check=True,
    )
    target.chmod(0o755)
    return target
