"""The step of the tier `cgroup`: one cap on the GPU memory of a pod, set by the driver."""

from pathlib import Path

from dragoon.errors import StateError
from dragoon.gpu.model import PciAddress
from dragoon.prepare.effects import Effects
from dragoon.prepare.paths import Paths
from dragoon.prepare.step import BaseStep, Place


class MemoryCap(BaseStep, frozen=True, tag="memoryCap"):
    """The cap of one pod on one card; hard is bytes.

    Claims of a pod that have shares of one card plan the same cap.
    """

    pod_uid: str
    address: str
    hard: int

    def check(self, place: Place) -> None:
        """Raises StateError, retryable, for a pod without a cgroup."""
        self._needed(place)

    def shared(self) -> str:
        return f"memory-cap/{self.pod_uid}_{self.address}"

    def about(self, place: Place) -> str:  # noqa: ARG002 - the pod and the card tell it
        return f"the memory cap of pod {self.pod_uid} on GPU {self.address}"

    def holds(self, place: Place) -> bool:
        """Whether the driver has this cap now."""
        cgroup = self._cgroup(place)
        return cgroup is not None and place.effects.memory_cap(self._card, cgroup) == self.hard

    def apply(self, place: Place) -> None:
        """Sets it, and has it read back."""
        place.effects.set_memory_cap(self._card, self._needed(place), self.hard)

    def undo(self, place: Place) -> None:
        """Takes it away; a cgroup that is gone took its cap along."""
        cgroup = self._cgroup(place)
        if cgroup is not None:
            place.effects.set_memory_cap(self._card, cgroup, None)

    @property
    def _card(self) -> PciAddress:
        return PciAddress.parse(self.address)

    def _needed(self, place: Place) -> Path:
        cgroup = self._cgroup(place)
        if cgroup is None:
            looked = ", ".join(map(str, place.paths.pod_cgroups(self.pod_uid)))
            raise StateError(
                f"pod {self.pod_uid} has no cgroup where one was looked for: {looked}",
                hint="mount the node's cgroup v2 tree into the plugin, and set cgroupRoot to it",
                retryable=True,
            )
        return cgroup

    def cgroup(self, effects: Effects, paths: Paths) -> Path | None:
        """The cgroup of the pod, None where it has none."""
        return next(filter(effects.exists, paths.pod_cgroups(self.pod_uid)), None)

    def _cgroup(self, place: Place) -> Path | None:
        return self.cgroup(place.effects, place.paths)
