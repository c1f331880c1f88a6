"""The tier `cgroup`: the driver's own cap on the GPU memory of a pod (r615 and newer).

The kubelet makes the cgroup of a pod before it asks for its devices, so a cap on it is there before
any container, needs nothing of the image, and a failure fails the prepare (enforcement.md section
0.4). One cap for each card and pod: the sum of the pod's shares there. Containers see the memory of
the whole card all the same. Whether a cap covers the cgroups below depends on how the driver
counts: so the tier is offered only after `cap_probe` saw one refuse. Not yet run on hardware.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from dragoon.api.enforcement import Tier
from dragoon.api.forms import MIB
from dragoon.gpu.model import Inventory
from dragoon.prepare.enforcement.errors import UnenforceableError
from dragoon.prepare.enforcement.memory_cap import MemoryCap
from dragoon.prepare.enforcement.tier import Grant, Measures

Probe = Callable[[Inventory], str]
"""Why caps do not work on this node; empty where one was seen to refuse an allocation. Blocks."""


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
