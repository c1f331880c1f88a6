"""Asking cards with MIG what they offer, and whose instances are on them."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from dragoon.errors import HardwareError
from dragoon.gpu.aside import Patients
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.naming import mig_name
from dragoon.gpu.port import MigCards
from dragoon.publish.card import Division

PATIENCE_SECONDS: Final = 10.0
"""How long one card may take: many times what it needs, also while it is being divided."""
_WHOSE: Final = "the journal does not say whose its instances are"

Reading = tuple[MigCard, tuple[MigInstance, ...]]
"""A card with MIG, and all its instances."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What cards with MIG said: themselves, and all their instances. unread: why one did not."""

    cards: Mapping[PciAddress, Reading] = field(default_factory=dict)
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
    return _sorted_out({address: _answer(cards, address) for address in _with_mig(inventory)})


class Surveyor:
    """Asks them all at once and off the event loop; a card that hangs costs only itself, too.

    patience: seconds for a card. One that did not answer in time is not asked again before it has.
    """

    def __init__(self, cards: MigCards, patience: float = PATIENCE_SECONDS) -> None:
        self._cards = cards
        self._patients = Patients(patience)

    async def survey(self, inventory: Inventory) -> Survey:
        """What the function of this name answers."""
        addresses = _with_mig(inventory)
        answers = await asyncio.gather(*map(self._ask, addresses))
        return _sorted_out(dict(zip(addresses, answers, strict=True)))

    async def _ask(self, address: PciAddress) -> Reading | HardwareError | None:
        try:
            return await self._patients.ask(address, partial(_answer, self._cards, address))
        except HardwareError as error:
            return error


def _with_mig(inventory: Inventory) -> list[PciAddress]:
    return [gpu.address for gpu in inventory.gpus if gpu.mig is not None]


def _answer(cards: MigCards, address: PciAddress) -> Reading | HardwareError | None:
    """What one card says, None where it has no MIG after all. Blocks."""
    try:
        card = cards.card(address)
        return None if card is None else (card, cards.instances(address))
    except HardwareError as error:
        return error


def _sorted_out(answers: Mapping[PciAddress, Reading | HardwareError | None]) -> Survey:
    return Survey(
        {address: answer for address, answer in answers.items() if isinstance(answer, tuple)},
        {address: str(why) for address, why in answers.items() if isinstance(why, HardwareError)},
    )


def foreign(instances: Iterable[MigInstance], made: Collection[str]) -> tuple[MigInstance, ...]:
    """The instances that this plugin did not make."""
    return tuple(one for one in instances if _name(one) not in made)


def _name(instance: MigInstance) -> str:
    return mig_name(instance.parent, instance.profile, instance.placement.start)
