"""The GPUs that the settings mean: the real driver's, or a simulated machine's."""

import platform
from pathlib import Path
from typing import Final

from dragoon.app.config import PluginConfig
from dragoon.gpu.model import Inventory
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.pci import Roots
from dragoon.prepare.driver_files import LIBRARY_FOLDERS
from dragoon.prepare.host_root import HostRoot

SETTINGS: Final = (
    "simulate",
    "simulate_state",
    "node_name",
    "sys_root",
    "proc_root",
    "dev_root",
    "host_root",
    "driver_root",
)
"""The settings that say which GPUs are meant."""

SIMULATED_NODE: Final = "simulated"
"""The node name of a simulated machine that was given none."""


def gpus_of(config: PluginConfig, *, beside_driver: bool = False) -> NvmlGpus:
    """Opens the GPUs; see gpu.opening.open_gpus for what is raised."""
    return open_gpus(
        config.simulate or None,
        Path(config.simulate_state) if config.simulate_state else None,
        roots_of(config),
        node=config.node_name,
        beside_driver=beside_driver,
        folders=_library_folders(config),
    )


def _library_folders(config: PluginConfig) -> tuple[Path, ...]:
    """Where a driver has its libraries that is not installed in this very root folder."""
    root = HostRoot(Path(config.host_root)).here(Path(config.driver_root))
    return () if root == Path("/") else tuple(root / folder for folder in LIBRARY_FOLDERS)


def roots_of(config: PluginConfig) -> Roots:
    """Where the kernel's trees are."""
    return Roots(Path(config.sys_root), Path(config.proc_root), Path(config.dev_root) / "dev")


def look_once(config: PluginConfig) -> Inventory:
    """What is on this node now, for a command; simulating beside a real driver is harmless here."""
    gpus = gpus_of(config, beside_driver=True)
    try:
        return gpus.inventory()
    finally:
        gpus.close()


def node_name(config: PluginConfig) -> str:
    """The node's name for a command: as given, else as the kubelet would take it."""
    simulated = config.simulate or config.simulate_state
    return config.node_name or (SIMULATED_NODE if simulated else platform.node().lower())
