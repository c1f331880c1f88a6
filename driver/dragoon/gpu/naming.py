"""Device names: from the PCI address, never from an index or a minor number."""

import re
from collections.abc import Iterable
from functools import lru_cache

from dragoon.errors import InvalidInputError
from dragoon.gpu.mig_names import ProfileName
from dragoon.gpu.model import Gpu, Inventory, LostGpu, MigProfile, PciAddress, Placement

_PREFIX = "gpu-"
_NAME = re.compile(r"gpu-([0-9a-f]{4,8})-([0-9a-f]{2})-([0-9a-f]{2})-([0-7])(?:-.+)?")


def whole_name(address: PciAddress) -> str:
    """The name of a whole GPU as a device: `gpu-0000-65-00-0`."""
    return _PREFIX + address.slug


def shared_name(address: PciAddress) -> str:
    """The name of the same GPU as one that is given away in shares: `gpu-0000-65-00-0-shared`."""
    return f"{whole_name(address)}-shared"


def find(inventory: Inventory, device: str) -> Gpu | LostGpu | None:
    """The card that a device name means, lost or not; None where this node has no such card."""
    cards = inventory.cards
    for card in cards:
        if card.address is not None and whole_name(card.address) == device:
            return card
    return None


@lru_cache(maxsize=256)  # a node has few cards, and each prepare asks
def address_of(device: str) -> PciAddress | None:
    """The slot that a device name means, in whatever form; None for what is no such name."""
    found = _NAME.fullmatch(device)
    return None if found is None else PciAddress(*(int(part, 16) for part in found.groups()))


def mig_name(address: PciAddress, profile: MigProfile, start: int) -> str:
    """The name of a MIG device: parent, profile, start: `gpu-0000-65-00-0-mig-3g20gb-4`."""
    return f"{whole_name(address)}-mig-{_slug(profile)}-{start}"


def find_mig(
    address: PciAddress, profiles: Iterable[MigProfile], device: str
) -> tuple[MigProfile, Placement] | None:
    """Which profile and placement of the card a device name means; None where it means none."""
    for profile in profiles:
        for placement in profile.placements:
            if mig_name(address, profile, placement.start) == device:
                return profile, placement
    return None


def _slug(profile: MigProfile) -> str:
    try:
        return ProfileName.parse(profile.name).slug
    except InvalidInputError:  # a name that a driver invents costs only beauty
        return f"profile-{profile.number}"
