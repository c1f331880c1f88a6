"""What publishing needs from the rest of a node: which devices are prepared, and cards with MIG."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dragoon.api.forms import Form
from dragoon.app import enforcing, hardware, node_claims
from dragoon.app.config import PluginConfig
from dragoon.errors import DragoonError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.kube.port import Object
from dragoon.publish import slices
from dragoon.publish.card import Division
from dragoon.publish.choosing import Wishes
from dragoon.publish.holding import Prepared
from dragoon.publish.surveying import survey


def prepared(config: PluginConfig) -> Prepared | None:
    """What the journal of this node says; None where some of it cannot be read. Blocks."""
    try:
        contents = node_claims.contents(config)
    except DragoonError:
        return None
    if contents.unreadable:
        return None
    devices = [held for entry in contents.held for held in entry.devices]
    return Prepared(
        frozenset(held.device for held in devices),
        made=frozenset(held.device for held in devices if held.mig and held.mig.made),
    )


async def journal(config: PluginConfig) -> Prepared | None:
    """The same, off the event loop."""
    return await asyncio.to_thread(prepared, config)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is on this node now. divisions: what cards with MIG say; wishes: what is published."""

    inventory: Inventory
    divisions: Mapping[PciAddress, Division]
    wishes: Wishes

    def as_slices(self, node: str, driver: str) -> tuple[Object, ...]:
        """The slices of this node, without names: those come from the API server."""
        return slices.render(
            self.inventory, node=node, driver=driver, wishes=self.wishes, divisions=self.divisions
        )


def look_at_forms(config: PluginConfig) -> Seen:
    """Everything that publishing depends on here, for a command.

    Where shares are wanted it tries the enforcement tiers as the plugin does.
    """
    gpus = hardware.gpus_of(config, beside_driver=True)
    try:
        inventory, wishes = gpus.inventory(), config.wishes
        if Form.SHARED in wishes.forms:
            enforcement = enforcing.enforcement_of(
                config, node_claims.paths_of(config), gpus.limits
            )
            wishes = replace(wishes, enforcement=enforcement.probe(inventory))
        found = prepared(config)
        divisions, _ = survey(gpus.mig, inventory).told_apart(found.made if found else None)
        return Seen(inventory, divisions, wishes)
    finally:
        gpus.close()
