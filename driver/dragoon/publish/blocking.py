"""Keeping further claims off devices that a claim was refused because of. Pure.

Each form of a card for itself: one that cannot go into MIG mode now can still be given away whole.
"""

from collections.abc import Sequence

from dragoon.api import names
from dragoon.gpu.obstacles import Obstacle
from dragoon.publish.device import Device, Taint


def blocked(devices: Sequence[Device], obstacles: Sequence[Obstacle]) -> tuple[Device, ...]:
    """The devices, tainted where an obstacle blocks them; the first obstacle of a device counts."""
    return tuple(_blocked(device, obstacles) for device in devices)


def _blocked(device: Device, obstacles: Sequence[Obstacle]) -> Device:
    for obstacle in obstacles:
        if obstacle.blocks(device.name):
            return device.tainted(taint(obstacle))
    return device


def taint(obstacle: Obstacle) -> Taint:
    """NoSchedule; the value is the code, and who is in the way as far as there is room."""
    return Taint.because(names.TAINT_BLOCKED, f"{obstacle.code} {obstacle.who}")
