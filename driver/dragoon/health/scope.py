"""Which devices of a divided card an event about one of its instances leaves alone. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dragoon.gpu.condition import EventKind, GpuEvent
from dragoon.gpu.mig import MigCard, MigInstance
from dragoon.gpu.naming import mig_name
from dragoon.health.xids import INSTANCE_SCOPED

_OF_MEMORY: Final = frozenset({EventKind.DOUBLE_BIT_ECC, EventKind.RETIREMENT_FAILED})


@dataclass(frozen=True, slots=True)
class Heard:
    """An event and what it is about. where: the instance in words, empty for the whole card."""

    event: GpuEvent
    spared: frozenset[str] = frozenset()
    where: str = ""


def needs_instances(event: GpuEvent) -> bool:
    """Whether it can be about less than the card, so that the card must be asked."""
    return event.gpu_instance is not None and (
        event.number in INSTANCE_SCOPED if event.kind is EventKind.XID else event.kind in _OF_MEMORY
    )


def heard(event: GpuEvent, card: MigCard | None, instances: Iterable[MigInstance]) -> Heard:
    """The event with the devices that share no memory slice with its instance.

    Devices that do share one, the whole GPU among them, would be given the same memory. An instance
    that is not there any more was somewhere: then nothing is spared.
    """
    if card is None or event.address is None or not needs_instances(event):
        return Heard(event)
    for one in instances:
        if one.identity == event.gpu_instance:
            spared = frozenset(
                mig_name(event.address, profile, place.start)
                for profile in card.profiles
                for place in profile.placements
                if not place.overlaps(one.placement)
            )
            return Heard(event, spared, f" in {one}")
    return Heard(event)
