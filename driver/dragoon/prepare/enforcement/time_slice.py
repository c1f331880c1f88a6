"""The time slice of a GPU: how long a process computes before another one does.

It belongs to the card, not to a claim: whoever is last on the card sets it back.
"""

from dragoon.api.opaque_config import TimeSlice
from dragoon.gpu.model import Gpu
from dragoon.prepare.enforcement.errors import UnenforceableError
from dragoon.prepare.step import BaseStep, Place

_FIRST_CAPABILITY = (7, 0)


class SetTimeSlice(BaseStep, frozen=True, tag="timeSlice"):
    """Sets the time slice of one card."""

    address: str
    uuid: str
    interval: TimeSlice

    def shared(self) -> str:
        return f"time-slice/{self.address}"

    def agrees(self, other: BaseStep) -> bool:  # noqa: ARG002 - whatever the other one is
        """An administrator may choose another one while claims of the old one live."""
        return True

    def about(self, place: Place) -> str:  # noqa: ARG002 - the card tells it
        return f"the time slice of {self.uuid}"

    def holds(self, place: Place) -> bool:  # noqa: ARG002 - there is nothing to ask
        """Believed: the driver offers no way to read it."""
        return True

    def believed(self) -> bool:
        """An unprepare that failed half-way may have set it back."""
        return True

    def apply(self, place: Place) -> None:
        """Sets it, whatever it was."""
        place.effects.set_time_slice(self.uuid, self.interval)

    def undo(self, place: Place) -> None:
        """Sets it to the driver's default."""
        place.effects.set_time_slice(self.uuid, TimeSlice.DEFAULT)


def time_slice(gpu: Gpu, interval: TimeSlice) -> SetTimeSlice:
    """The step for a card. Raises UnenforceableError for one that has none (before Volta)."""
    capability = gpu.compute_capability
    if capability is not None and capability < _FIRST_CAPABILITY:
        raise UnenforceableError(
            f"GPU {gpu.address}: timeSlice: found {interval}, but a {gpu.product or 'card'} of "
            f"compute capability {capability[0]}.{capability[1]} has no time slices",
            hint="remove timeSlice, or ask for a GPU of compute capability 7.0 or higher",
        )
    return SetTimeSlice(str(gpu.address), gpu.uuid, interval)
