"""What a container with a real GPU needs besides the GPU's own device file, found on this node.

The fallback where NVIDIA's toolkit is not installed: control device files, the driver's libraries
under all their names, and nvidia-smi. No hooks: what a library is called inside the container is
mounted, not linked. Not yet run on hardware.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dragoon.errors import HardwareError
from dragoon.prepare.cdi import DeviceNode, Edits, Mount

_CONTROL: Final = ("dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-uvm-tools", "dev/nvidia-modeset")
_NEEDED: Final = frozenset({"dev/nvidiactl", "dev/nvidia-uvm"})
LIBRARY_FOLDERS: Final = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
)
"""Where distributions keep a driver's libraries, below its root."""
_PROGRAMS: Final = ("usr/bin/nvidia-smi", "usr/bin/nvidia-debugdump")
_OPTIONS: Final = ("ro", "nosuid", "nodev", "bind")


def driver_edits(driver_root: Path, dev_root: Path, driver_version: str | None) -> Edits:
    """The edits for a driver of that version below `driver_root`. Blocks.

    Raises HardwareError, retryable, when a needed device file or libcuda is not there: an
    incomplete answer would start containers without a GPU (NVIDIA's driver, issue 1380).
    """
    if not driver_version:
        raise HardwareError(
            "the driver does not say its version, so its libraries cannot be found",
            hint="install NVIDIA's container toolkit, which finds them by itself",
        )
    mounts = (*_libraries(driver_root, driver_version), *_programs(driver_root))
    if not any("/libcuda.so" in mount.container_path for mount in mounts):
        raise HardwareError(
            f"no libcuda.so.{driver_version} below {driver_root}",
            hint="set driverRoot to where the driver is installed, such as /run/nvidia/driver",
            retryable=True,
        )
    return Edits(device_nodes=tuple(_control_nodes(dev_root)), mounts=mounts)


def has_libraries(driver_root: Path, version: str) -> bool:
    """Whether libcuda of that version is below the root."""
    return any((driver_root / one / f"libcuda.so.{version}").exists() for one in LIBRARY_FOLDERS)


def missing_nodes(dev_root: Path) -> tuple[str, ...]:
    """The control device files that containers need and that are not there."""
    return tuple(f"/{one}" for one in sorted(_NEEDED) if not (dev_root / one).exists())


def _control_nodes(dev_root: Path) -> Iterator[DeviceNode]:
    for name in _CONTROL:
        host = dev_root / name
        if host.exists():
            yield DeviceNode(f"/{name}", "" if str(host) == f"/{name}" else str(host))
        elif name in _NEEDED:
            raise HardwareError(
                f"{host} does not exist",
                hint="load the kernel modules and make the device files: nvidia-modprobe -u -c 0",
                retryable=True,
            )


def _libraries(driver_root: Path, version: str) -> Iterator[Mount]:
    """The libraries of that version, and each symbolic link beside them that leads to one."""
    for folder in LIBRARY_FOLDERS:
        place = driver_root / folder
        libraries = {path.name: path for path in sorted(place.glob(f"lib*.so.{version}"))}
        for link in sorted(place.glob("lib*.so*")):
            found = libraries.get(_leads_to(link))
            if found is not None:
                yield Mount(str(found), f"/{folder}/{link.name}", _OPTIONS)


def _leads_to(link: Path) -> str:
    """The name of the file in the same folder that a chain of symbolic links ends at."""
    seen: set[str] = set()
    while link.is_symlink() and link.name not in seen:
        seen.add(link.name)
        link = link.with_name(link.readlink().name)
    return link.name


def _programs(driver_root: Path) -> Iterator[Mount]:
    for program in _PROGRAMS:
        if (driver_root / program).is_file():
            yield Mount(str(driver_root / program), f"/{program}", _OPTIONS)
