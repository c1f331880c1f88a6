"""What preparing needs of a node, from its settings: folders, edits for every container, effects."""

import shutil
from pathlib import Path

from dragoon.app import enforcing
from dragoon.app.config import PluginConfig
from dragoon.gpu.port import MemoryLimits, MigCards
from dragoon.prepare.common_edits import CommonEdits
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.host_root import HostRoot
from dragoon.prepare.settings import PrepareSettings


def host_effects(
    config: PluginConfig, limits: MemoryLimits | None, mig: MigCards | None
) -> HostEffects:
    """What prepare does to this node, and to the cards behind those ports."""
    return HostEffects(Path(config.proc_root), enforcing.cards_of(config, limits, mig))


def prepare_settings(config: PluginConfig) -> PrepareSettings:
    """Names, folders and roots."""
    return PrepareSettings(
        driver=config.driver_name,
        node=config.node_name,
        state_folder=config.state_folder,
        cdi_folder=Path(config.cdi_root),
        dev_root=Path(config.dev_root),
        driver_root=Path(config.driver_root),
        cgroup_root=Path(config.cgroup_root),
        host_root=Path(config.host_root),
    )


def common_edits(config: PluginConfig) -> CommonEdits:
    """What every container with a GPU gets; nvidia-ctk makes it where it is found."""
    tool = config.nvidia_ctk or shutil.which("nvidia-ctk")
    return CommonEdits(
        Path(config.driver_root),
        Path(config.dev_root),
        toolkit=Path(tool) if tool else None,
        host=HostRoot(Path(config.host_root)),
    )
