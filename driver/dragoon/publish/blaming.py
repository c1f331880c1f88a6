"""Keeping new claims off devices of cards that are not well. Pure.

Who says so is not known here; it comes as taints by card, each with the devices that it spares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dragoon.gpu.model import PciAddress
from dragoon.gpu.naming import address_of
from dragoon.publish.device import Device, Taint


@dataclass(frozen=True, slots=True)
class Blame:
    """A taint of all devices of a card, but those whose names are spared."""

    taint: Taint
    spared: frozenset[str] = frozenset()


Blames = Mapping[PciAddress, Sequence[Blame]]
"""By card, the gravest first."""


def blamed(devices: Sequence[Device], blames: Blames) -> tuple[Device, ...]:
    """The devices with their taints.

    A taint that a device has already, such as that of a lost card, keeps its value and takes the
    effect of the blame.
    """
    return tuple(_blamed(device, blames) for device in devices)


def _blamed(device: Device, blames: Blames) -> Device:
    address = address_of(device.name)
    if address is None:
        return device
    own = {taint.key for taint in device.taints}
    for blame in blames.get(address, ()):
        if device.name in blame.spared:
            continue
        key, effect = blame.taint.key, blame.taint.effect
        if key in own:
            device = replace(
                device,
                taints=tuple(
                    replace(one, effect=effect) if one.key == key else one for one in device.taints
                ),
            )
        else:
            device = device.tainted(blame.taint)
    return device
