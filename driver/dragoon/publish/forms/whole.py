"""The form in which one claim gets the whole GPU."""

from dragoon.gpu.naming import whole_name
from dragoon.publish import attributes
from dragoon.publish.card import Card, Made
from dragoon.publish.device import Device


def whole(card: Card) -> Made:
    """The device; it takes all counters of the card, if the card has any."""
    said, left_out = attributes.describe(card.facts)
    gpu = card.facts.gpu
    device = Device(
        whole_name(gpu.address),
        said,
        attributes.memory(gpu.memory_bytes),
        card.taints,
        consumes=card.ledger.total if card.ledger else None,
    )
    return (device,), left_out
