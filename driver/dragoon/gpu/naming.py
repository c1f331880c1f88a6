"""Device names: from the PCI address, never from an index or a minor number (DESIGN section 4)."""

from dragoon.gpu.model import Gpu, Inventory, LostGpu, PciAddress

_PREFIX = "gpu-"


def whole_name(address: PciAddress) -> str:
    """The name of a whole GPU as a device: `gpu-0000-65-00-0`."""
    return _PREFIX + address.slug


def find(inventory: Inventory, device: str) -> Gpu | LostGpu | None:
    """The card that a device name means, lost or not; None where this node has no such card."""
    cards: tuple[Gpu | LostGpu, ...] = (*inventory.gpus, *inventory.lost)
    for card in cards:
        if card.address is not None and whole_name(card.address) == device:
            return card
    return None
