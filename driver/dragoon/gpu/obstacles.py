"""What keeps a card from being used in some form, as somebody found who was refused. Pure.

Found by prepare, shown by publish in a taint, so that no further claim runs into it.
"""

from dataclasses import dataclass

from dragoon.api.forms import Form
from dragoon.gpu import naming
from dragoon.gpu.model import PciAddress


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One refusal of a card. code: of the error; who: what is in the way, in few words.

    forms: those that the card cannot take now; the others can be used. pids: of the processes in
    the way, as far as the driver lists them. needs_mig: whether the card has to be in MIG mode.
    """

    card: PciAddress
    forms: frozenset[Form]
    needs_mig: bool
    code: str
    who: str = ""
    pids: frozenset[int] = frozenset()

    def blocks(self, device: str) -> bool:
        """Whether the device of that name is a form of the card that cannot be had."""
        if naming.address_of(device) != self.card:
            return False
        plain = {
            naming.whole_name(self.card): Form.WHOLE,
            naming.shared_name(self.card): Form.SHARED,
        }
        return plain.get(device, Form.MIG) in self.forms


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to see of a card later: its MIG mode, instances, and the processes on it."""

    mig_enabled: bool
    has_instances: bool
    pids: frozenset[int] = frozenset()


UNLISTED_SECONDS = 300.0
"""How long an obstacle stands that nobody can see, such as a client that the driver does not
list."""


def stands(obstacle: Obstacle, scene: Scene, age: float) -> bool:
    """Whether the obstacle is still there. age: seconds since the last refusal.

    What can be seen decides. What cannot is believed for a while, and then the next claim tells.
    """
    if scene.mig_enabled == obstacle.needs_mig:
        return False
    if obstacle.code == "ResetRequired":
        return True
    if obstacle.pids:
        return bool(obstacle.pids & scene.pids)
    if not obstacle.needs_mig and scene.has_instances:
        return True
    return age < UNLISTED_SECONDS
