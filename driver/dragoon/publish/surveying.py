"""Asking cards with MIG what they offer, and whose instances are on them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dragoon.errors import HardwareError
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.naming import mig_name
from dragoon.gpu.port import MigCards
from dragoon.publish.card import Division

_WHOSE = "the journal does not say whose its instances are"


@dataclass(frozen=True, slots=True)
class Survey:
    """What cards with MIG said: themselves, and all their instances. unread: why one did not."""

    cards: Mapping[PciAddress, tuple[MigCard, tuple[MigInstance, ...]]] = field(
        default_factory=dict
    )
    unread: Mapping[PciAddress, str] = field(default_factory=dict)

    def told_apart(
        self, made: Collection[str] | None
    ) -> tuple[dict[PciAddress, Division], dict[PciAddress, str]]:
        """The cards with the instances that are somebody else's, and those that stay unread.

        made: names of devices whose instances this plugin made. None where that is not known: then
        a card that has instances counts as not read.
        """
        unread = dict(self.unread)
        divisions = {}
        for address, (card, instances) in self.cards.items():
            if instances and made is None:
                unread[address] = _WHOSE
            else:
                divisions[address] = Division(card, foreign(instances, made or ()))
        return divisions, unread


def survey(cards: MigCards, inventory: Inventory) -> Survey:
    """Asks every card that has MIG. Blocks. A card that fails costs only itself."""
    found: dict[PciAddress, tuple[MigCard, tuple[MigInstance, ...]]] = {}
    unread: dict[PciAddress, str] = {}
    for gpu in inventory.gpus:
        if gpu.mig is None:
            continue
        try:
            card = cards.card(gpu.address)
            if card is not None:
                found[gpu.address] = card, cards.instances(gpu.address)
        except HardwareError as error:
            unread[gpu.address] = str(error)
    return Survey(found, unread)


def foreign(instances: Iterable[MigInstance], made: Collection[str]) -> tuple[MigInstance, ...]:
    """The instances that this plugin did not make."""
    return tuple(one for one in instances if _name(one) not in made)


def _name(instance: MigInstance) -> str:
    return mig_name(instance.parent, instance.profile, instance.placement.start)
