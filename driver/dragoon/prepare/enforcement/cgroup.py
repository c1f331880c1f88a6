"""The tier `cgroup`: the driver's own cap on the GPU memory of a pod (r615 and newer).

The kubelet makes the cgroup of a pod before it asks for its devices, so a cap on it is there before
any container, needs nothing of the image, and a failure fails the prepare (enforcement.md section
0.4). One cap for each card and pod: the sum of the pod's shares there. Containers see the memory of
the whole card all the same. Whether a cap covers the cgroups below depends on how the driver
counts: so the tier is offered only after `cap_probe` saw one refuse. Not yet run on hardware.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dragoon.api.enforcement import Tier
from dragoon.api.forms import MIB
from dragoon.errors import StateError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement.tier import Grant, Measures, UnenforceableError
from dragoon.prepare.paths import Paths
from dragoon.prepare.step import BaseStep, Place

Probe = Callable[[Inventory], str]
"""Why caps do not work on this node; empty where one was seen to refuse an allocation. Blocks."""


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


@dataclass(frozen=True, slots=True)
class Cgroup:
    """cap_probe: how it is found out whether caps work; None where this driver has none."""

    cap_probe: Probe | None = None

    name: ClassVar[Tier] = Tier.CGROUP
    needs_pod: ClassVar[bool] = True

    def probe(self, inventory: Inventory) -> str:
        """Whether a cap really refuses."""
        if self.cap_probe is None:
            return "this driver has no memory caps for cgroups: it needs branch r615 or newer"
        return self.cap_probe(inventory)

    def plan(self, grant: Grant) -> Measures:
        """The cap of the pod on this card."""
        where = f"claim {grant.claim}: request {grant.request}"
        if grant.amount.cores:
            raise UnenforceableError(
                f"{where}: found cores {grant.amount.cores}, and the tier cgroup limits memory only",
                hint="leave cores out, or ask for the tier hami in a SharedGpuConfig",
            )
        if grant.pod is None or grant.container is None:
            return Measures()
        hard = grant.pod.memory[grant.gpu.address] // MIB * MIB
        return Measures(steps=(MemoryCap(grant.pod.uid, str(grant.gpu.address), hard),))
