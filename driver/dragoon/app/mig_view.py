"""The cards of this node that can be divided, and who has which part of them, for a command."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dragoon.api.claims import ClaimRef
from dragoon.app import hardware, node_claims
from dragoon.app.config import PluginConfig
from dragoon.errors import DragoonError
from dragoon.gpu.mig import MigCard, MigInstance, occupied_by
from dragoon.gpu.model import MigProfile, PciAddress, Placement
from dragoon.gpu.naming import mig_name
from dragoon.gpu.port import MigCards

NOBODY: Final = "no claim"
"""The owner of an instance that no claim of this node has."""


@dataclass(frozen=True, slots=True)
class DividedCard:
    """A card with MIG and its instances. owners: claims by the UUID of what they have."""

    card: MigCard
    instances: tuple[MigInstance, ...]
    owners: Mapping[str, ClaimRef]

    def owner(self, instance: MigInstance) -> str:
        """The claim that has an instance, or that nobody has it."""
        claim = self.owners.get(instance.uuid or "")
        return f"{claim.namespace}/{claim.name}" if claim else NOBODY

    def name(self, profile: MigProfile, placement: Placement) -> str:
        """The device of that profile at that place."""
        return mig_name(self.card.address, profile, placement.start)

    def takers(self, profile: MigProfile, placement: Placement) -> tuple[MigInstance, ...]:
        """What keeps such an instance from being made there now.

        Besides those that lie there: all of the profile, where no more of it are possible.
        """
        there = occupied_by(self.instances, placement)
        same = tuple(one for one in self.instances if one.profile == profile)
        return there or (same if len(same) >= profile.instances else ())


@dataclass(frozen=True, slots=True)
class Division:
    """The cards with MIG, in order, and why others could not be asked."""

    cards: tuple[DividedCard, ...]
    problems: tuple[str, ...] = ()


def look(config: PluginConfig) -> Division:
    """Asks every card. Raises DriverMissingError, HardwareError; one bad card costs no other."""
    gpus = hardware.gpus_of(config, beside_driver=True)
    try:
        owners = _owners(config)
        cards: list[DividedCard] = []
        problems: list[str] = []
        for gpu in gpus.inventory().gpus:
            try:
                found = _ask(gpus.mig, gpu.address, owners)
            except DragoonError as error:
                problems.append(f"GPU {gpu.address}: {error}")
            else:
                cards += found
        return Division(tuple(cards), tuple(problems))
    finally:
        gpus.close()


def _ask(
    mig: MigCards, address: PciAddress, owners: Mapping[str, ClaimRef]
) -> tuple[DividedCard, ...]:
    card = mig.card(address)
    return () if card is None else (DividedCard(card, mig.instances(address), owners),)


def _owners(config: PluginConfig) -> dict[str, ClaimRef]:
    return {
        held.mig.uuid: entry.claim
        for entry in node_claims.contents(config).held
        for held in entry.devices
        if held.mig is not None and not held.admin_access
    }
