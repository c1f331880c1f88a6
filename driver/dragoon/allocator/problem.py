"""What the search is asked, what it answers, and the ends it can come to without an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoon.allocator.candidates import Candidate
from dragoon.allocator.model import Claim, DeviceClass, DeviceId, Node, PoolId, Request
from dragoon.allocator.pools import Pool
from dragoon.allocator.selection import SelectorError
from dragoon.allocator.usage import UNUSED, PoolUsage
from dragoon.errors import DragoonError

MAX_DEVICES: Final = 32
"""Devices of one claim (resource.k8s.io/v1 AllocationResultsMaxSize)."""
ATTEMPT_LIMIT: Final = 1_000_000
"""Devices tried before the search gives up; kube-scheduler gives up after 10 seconds."""


class TooManyDevicesError(DragoonError):
    """A claim asks for more devices than one claim can have."""

    code = "TooManyDevices"


class AllDevicesError(DragoonError):
    """Allocation mode All, and it cannot be known or never be right to have all of them."""

    code = "AllDevices"


class SearchStoppedError(DragoonError):
    """The search gave up: whether there is a solution is not known."""

    code = "SearchStopped"


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A device for a request or an alternative of it. reserved: it took counters."""

    request: Request
    candidate: Candidate
    reserved: bool = False

    @property
    def id(self) -> DeviceId:
        """The device's name."""
        return self.candidate.id


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What the search is asked. claims: of one pod, not allocated yet, in the pod's order.

    twins: of a claim that begins what is like something before it, the claim that begins that, by
    index. Their devices are searched in one order only, as the other orders are the same solutions
    again. kube-scheduler has none.
    """

    claims: Sequence[Claim]
    classes: Mapping[str, DeviceClass]
    pools: Sequence[Pool]
    usage: Mapping[PoolId, PoolUsage]
    node: Node
    twins: Mapping[int, int] = field(default_factory=dict)

    def usage_of(self, pool: Pool) -> PoolUsage:
        """What is held of a pool."""
        return self.usage.get(pool.id, UNUSED)

    def class_of(self, request: Request, claim: Claim) -> DeviceClass:
        """The class of a request. Raises SelectorError where there is none."""
        found = self.classes.get(request.class_name)
        if found is None:
            raise SelectorError(
                f"claim {claim}, request {request.name}: there is no DeviceClass "
                f"{request.class_name}",
                hint=f"known are {', '.join(sorted(self.classes)) or 'none'}",
            )
        return found


Solution = tuple[tuple[Chosen, ...], ...]
"""The devices of each claim, in the order they were chosen."""


@dataclass(slots=True)
class Attempts:
    """How many devices may still be tried. Mutable; searches may share one."""

    left: int = ATTEMPT_LIMIT

    def count(self) -> None:
        """Takes one. Raises SearchStoppedError where there is none left."""
        self.left -= 1
        if self.left < 0:
            raise SearchStoppedError("no solution found within the limit of attempts")
