"""Asking the cards of a claim's MIG devices into what they can be divided. Blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoon.api.forms import Form
from dragoon.gpu.mig import MigCard
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.port import MigCards
from dragoon.prepare.given import Given, form_of
from dragoon.prepare.locating import locate
from dragoon.prepare.settings import PrepareSettings


@dataclass(frozen=True, slots=True)
class Divisible:
    """What is known of dividing cards. cards: with MIG, by address; allowed: on this node."""

    cards: Mapping[PciAddress, MigCard] = field(default_factory=dict)
    allowed: bool = False


def divisible(
    given: Given,
    inventory: Inventory,
    settings: PrepareSettings,
    mig: MigCards,
    *,
    allowed: bool,
) -> Divisible:
    """The cards of which the claim has a part by MIG. Raises what `locate` and `mig.card` raise."""
    parts = [one for one in given.devices if form_of(one.device) is Form.MIG]
    addresses = {locate(given.ref, one, inventory, settings).address for one in parts}
    found = {address: mig.card(address) for address in addresses}
    return Divisible({a: card for a, card in found.items() if card is not None}, allowed)
