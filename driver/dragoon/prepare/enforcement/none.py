"""The tier `none`: shares are counted, and nobody is kept to them. Only where somebody chose it."""

from dataclasses import dataclass
from typing import ClassVar

from dragoon.api.enforcement import Tier
from dragoon.api.opaque_config import TimeSlice
from dragoon.gpu.model import Inventory
from dragoon.prepare.enforcement.tier import Grant, Measures
from dragoon.prepare.enforcement.time_slice import time_slice


@dataclass(frozen=True, slots=True)
class Unenforced:
    """Time slicing. allowed: the administrator's opt-in; interval: for every card with shares."""

    allowed: bool = False
    interval: TimeSlice = TimeSlice.DEFAULT

    name: ClassVar[Tier] = Tier.NONE
    needs_pod: ClassVar[bool] = False

    def probe(self, inventory: Inventory) -> str:  # noqa: ARG002 - the setting alone decides
        """Whether it was chosen."""
        if self.allowed:
            return ""
        return "shares without limits are off on this node: set allowUnenforcedShares to allow them"

    def plan(self, grant: Grant) -> Measures:
        """The interval, if the administrator set one."""
        if self.interval is TimeSlice.DEFAULT:
            return Measures()
        return Measures(steps=(time_slice(grant.gpu, self.interval),))
