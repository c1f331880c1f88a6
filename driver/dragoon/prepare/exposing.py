"""What stands for a card inside a container: its device file, or a file that stands for one.

Pure.
"""

from typing import Final

import msgspec

from dragoon.errors import HardwareError
from dragoon.prepare import cdi
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.steps import Marker

_MARKER_FOLDER: Final = "/dev/dragoon"
_MARKER_OPTIONS: Final = ("ro", "nosuid", "nodev", "bind")


def gpu_node(device: str, minor: int | None, settings: PrepareSettings) -> cdi.DeviceNode:
    """The GPU's own device file. Its number comes from the driver and may change at every boot."""
    if minor is None:
        raise HardwareError(
            f"{device}: the driver does not say which /dev/nvidia<minor> it is",
            hint="check `nvidia-smi -q` for its minor number",
        )
    path = f"/dev/nvidia{minor}"
    return cdi.DeviceNode(path, host_path(path, settings))


def host_path(path: str, settings: PrepareSettings) -> str:
    """Where a device file is for the container runtime; empty where that is the same path."""
    host = str(settings.dev_root / path.lstrip("/"))
    return "" if host == path else host


def simulated_mount(uid: str, device: str, settings: PrepareSettings) -> cdi.Mount:
    """A file in the place where a device file would be."""
    source = str(settings.paths.marker(uid, device))
    return cdi.Mount(source, f"{_MARKER_FOLDER}/{device}", _MARKER_OPTIONS)


def marker(device: str, uuid: str) -> Marker:
    """What that file says."""
    content = {"device": device, "uuid": uuid, "simulated": True}
    return Marker(device, msgspec.json.encode(content).decode() + "\n")
