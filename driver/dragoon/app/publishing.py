"""What publishing needs from the rest of a node: which devices are prepared, and cards with MIG."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from dragoon.app import hardware
from dragoon.app.config import PluginConfig
from dragoon.errors import DragoonError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.journal import Journal
from dragoon.prepare.paths import Paths
from dragoon.publish.card import Division
from dragoon.publish.holding import Prepared
from dragoon.publish.surveying import survey


def prepared(config: PluginConfig) -> Prepared | None:
    """What the journal of this node says; None where some of it cannot be read. Blocks."""
    paths = Paths(config.driver_name, config.state_folder, Path(config.cdi_root))
    try:
        contents = Journal(HostEffects(Path(config.proc_root)), paths).contents()
    except DragoonError:
        return None
    if contents.unreadable:
        return None
    devices = frozenset(held.device for entry in contents.held for held in entry.devices)
    return Prepared(devices, made=devices)


async def journal(config: PluginConfig) -> Prepared | None:
    """The same, off the event loop."""
    return await asyncio.to_thread(prepared, config)


def look_at_forms(config: PluginConfig) -> tuple[Inventory, Mapping[PciAddress, Division]]:
    """What is on this node now, and what cards with MIG say of themselves, for a command."""
    gpus = hardware.gpus_of(config, beside_driver=True)
    try:
        inventory = gpus.inventory()
        found = prepared(config)
        divisions, _ = survey(gpus.mig, inventory).told_apart(found.made if found else None)
        return inventory, divisions
    finally:
        gpus.close()
