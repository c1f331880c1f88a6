"""The steps of MIG: the mode of a card, an instance that is made, an instance that is found.

They name a card and a placement, and look at the card each time: what stands there decides, by its
UUID. An instance of ours whose UUID is not journaled yet is told by its place: that the place was
free is seen before the step is journaled, under the lock of the card, and until the claim is
answered nobody else has a reason to remove ours and put his there. Instances do not survive a
reboot: so a step of an earlier boot has nothing to undo, and must not touch what stands there now.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dragoon.api.forms import Form
from dragoon.errors import DeviceLostError
from dragoon.gpu.faults import BlockedError, CardInUseError, PlacementTakenError
from dragoon.gpu.mig import MigInstance
from dragoon.gpu.model import PciAddress
from dragoon.gpu.obstacles import Obstacle
from dragoon.prepare.mig import MigPart
from dragoon.prepare.step import BaseStep, Place


class SetMigMode(BaseStep, frozen=True, tag="migMode"):
    """MIG mode of one card, which `mig_settling` leaves out where nothing is to be changed.

    It goes off with the last claim for which it was switched on, since a whole GPU is of no use in
    MIG mode and some of its links are down. Who switched it on before us keeps it.
    """

    address: str
    enabled: bool
    boot_id: str

    def shared(self) -> str:
        return f"mig-mode/{self.address}"

    def about(self, place: Place) -> str:  # noqa: ARG002 - the card tells it
        return f"MIG mode {'on' if self.enabled else 'off'} of GPU {self.address}"

    def holds(self, place: Place) -> bool:
        card = place.effects.mig.card(self.card)
        return (card is not None and card.mode.enabled) == self.enabled

    def apply(self, place: Place) -> None:
        if not self.holds(place):
            place.effects.mig.set_mode(self.card, enabled=self.enabled)

    def undo(self, place: Place) -> None:
        """Off again if nothing is left on the card; it stays on while a client holds the card.

        Then the next claim of the whole GPU turns it off, or is told who is in the way: an end of
        this claim must not hang on it.
        """
        mig = place.effects.mig
        if not self.enabled or place.effects.boot_id() != self.boot_id:
            return
        try:
            if not self.holds(place) or mig.instances(self.card):
                return
            mig.set_mode(self.card, enabled=False)
        except (CardInUseError, DeviceLostError):
            return

    @property
    def card(self) -> PciAddress:
        """The card whose mode it is."""
        return PciAddress.parse(self.address)


class _Instance(BaseStep, frozen=True):
    """An instance at a place of a card, for one device of the claim."""

    device: str
    address: str
    part: MigPart

    def about(self, place: Place) -> str:  # noqa: ARG002 - the card tells it
        return f"MIG instance {self.part} of GPU {self.address}"

    def holds(self, place: Place) -> bool:
        found = self.here(place)
        return found is not None and found.uuid is not None and self._is_meant(found)

    def here(self, place: Place) -> MigInstance | None:
        """The instance of that profile at exactly that place."""
        return standing(place.effects.mig.instances(self.card), self.part)

    def _is_meant(self, found: MigInstance) -> bool:
        return self.part.uuid in {"", found.uuid}

    @property
    def card(self) -> PciAddress:
        """The card that is divided."""
        return PciAddress.parse(self.address)


class MakeInstance(_Instance, frozen=True, tag="migInstance"):
    """Makes a GPU instance with one compute instance that fills it. boot_id: when."""

    boot_id: str

    def apply(self, place: Place) -> None:
        """Makes it, from nothing or from the half that a crash left.

        Raises PlacementTakenError when another one stands there.
        """
        if self.holds(place):
            return
        found = self.here(place)
        if found is not None and not found.compute:
            place.effects.mig.destroy(self.card, found.identity, None)
        place.effects.mig.create(self.card, self.part.profile, self.part.placement)

    def undo(self, place: Place) -> None:
        """Removes it if it is the one that was made. A card that is lost has lost it too.

        Raises CardInUseError while a process runs in it; what is left of it by then has no compute
        instance, and the next try removes that.
        """
        if place.effects.boot_id() != self.boot_id:
            return
        try:
            found = self.here(place)
            if found is not None and (not found.compute or self._is_meant(found)):
                place.effects.mig.destroy(self.card, found.identity, found.uuid)
        except DeviceLostError:
            return


class UseInstance(_Instance, frozen=True, tag="migFound"):
    """An instance that somebody else made. It is never touched."""

    def apply(self, place: Place) -> None:
        """Raises PlacementTakenError when it has gone."""
        if not self.holds(place):
            raise PlacementTakenError(
                f"GPU {self.address}: the MIG instance {self.part} ({self.part.uuid}), which "
                "somebody else made, is not there any more",
                hint="delete the pod: a new claim is allocated from what is here now",
            )

    def undo(self, place: Place) -> None:
        """It stays."""


MigStep = SetMigMode | MakeInstance | UseInstance
"""What changes or needs the division of a card: done before all other steps."""


@contextmanager
def blaming(step: MigStep) -> Iterator[None]:
    """Adds to an error of the block which forms of the card cannot be had because of it."""
    try:
        yield
    except BlockedError as error:
        needs_mig = step.enabled if isinstance(step, SetMigMode) else True
        processes = error.processes if isinstance(error, CardInUseError) else ()
        error.obstacle = Obstacle(
            step.card,
            frozenset({Form.MIG} if needs_mig else {Form.WHOLE, Form.SHARED}),
            needs_mig,
            error.code,
            " ".join(map(str, processes)),
            frozenset(one.pid for one in processes),
        )
        raise


def standing(instances: Iterable[MigInstance], part: MigPart) -> MigInstance | None:
    """The instance of that profile at exactly that place. Pure."""
    for one in instances:
        if one.profile.name == part.profile and one.placement == part.placement:
            return one
    return None


def taken(address: str, part: MigPart, others: Iterable[MigInstance]) -> PlacementTakenError:
    """The error that names the instances which are in the way and nobody's claim."""
    return PlacementTakenError(
        f"GPU {address}: {part} cannot be made: in the way is {', '.join(map(str, others))}, which "
        "no claim of this node has",
        hint="remove it with `nvidia-smi mig` if nobody needs it, or leave this GPU to its owner",
    )
