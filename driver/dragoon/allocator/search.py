"""The search: which devices the claims of one pod get on one node.

Exactly kube-scheduler's (dra-api.md C.4): claims, requests and devices in order, depth first with
backtracking, the first full solution wins. Within a request devices are taken in increasing
position. Selectors are evaluated only on devices that the search comes to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoon.allocator.constraints import SameValue
from dragoon.allocator.model import Claim, Device, DeviceClass, DeviceId, Node, Request, Slice
from dragoon.allocator.pools import Pool
from dragoon.allocator.selection import Selection, selection_of
from dragoon.allocator.taints import preventing
from dragoon.allocator.usage import Usage
from dragoon.errors import DragoonError, UnsupportedError

MAX_DEVICES: Final = 32
"""Devices of one claim (resource.k8s.io/v1 AllocationResultsMaxSize)."""
ATTEMPT_LIMIT: Final = 1_000_000
"""Devices tried before the search gives up; kube-scheduler gives up after 10 seconds."""


class TooManyDevicesError(DragoonError):
    """A claim asks for more devices than one claim can have."""

    code = "TooManyDevices"


class SearchStoppedError(DragoonError):
    """The search gave up: whether there is a solution is not known."""

    code = "SearchStopped"


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A device for a request, and the slice it is from."""

    request: Request
    slice: Slice
    device: Device


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What the search is asked. claims: of one pod, not allocated yet, in the pod's order."""

    claims: Sequence[Claim]
    classes: Mapping[str, DeviceClass]
    pools: Sequence[Pool]
    usage: Usage
    node: Node


Solution = tuple[tuple[Chosen, ...], ...]
"""The devices of each claim, in the order they were chosen."""


def solve(problem: Problem, *, attempts: int = ATTEMPT_LIMIT) -> Solution | None:
    """The first solution, or None where there is none.

    Raises SelectorError and TooManyDevicesError where kube-scheduler's attempt ends with an
    error, UnsupportedError where the search comes to a device it cannot judge,
    SearchStoppedError after that many attempts.
    """
    for claim in problem.claims:
        total = sum(request.count for request in claim.requests)
        if total > MAX_DEVICES:
            raise TooManyDevicesError(
                f"claim {claim}: asks for {total} devices, a claim can have {MAX_DEVICES}"
            )
    return _Search(problem, attempts).run()


@dataclass(frozen=True, slots=True, eq=False)
class _Wish:
    """One request in the flat order of the search. index: of its claim."""

    index: int
    request: Request
    selection: Selection


class _Search:
    """One run. Mutable: what is chosen so far, and what is known of (request, device)."""

    def __init__(self, problem: Problem, attempts: int) -> None:
        self._problem = problem
        self._left = attempts
        self._devices = [
            entry for pool in problem.pools if not pool.problem for entry in pool.devices()
        ]
        self._wishes = [
            _Wish(index, request, selection_of(request, str(claim), problem.classes))
            for index, claim in enumerate(problem.claims)
            for request in claim.requests
        ]
        self._constraints = [
            [SameValue(constraint) for constraint in claim.constraints] for claim in problem.claims
        ]
        self._selected: dict[tuple[int, int], bool] = {}
        self._taken: set[DeviceId] = set()
        self._chosen: list[list[Chosen]] = [[] for _ in problem.claims]

    def run(self) -> Solution | None:
        if not self._fill(0, 0, 0):
            return None
        return tuple(map(tuple, self._chosen))

    def _fill(self, wish: int, filled: int, start: int) -> bool:
        """Finds devices for everything from this wish on, of which `filled` devices are found.

        start: the position in the order of devices from which the wish may still choose.
        """
        if wish == len(self._wishes):
            return True
        current = self._wishes[wish]
        if filled == current.request.count:
            return self._fill(wish + 1, 0, 0)
        for position in range(start, len(self._devices)):
            slice_, device = self._devices[position]
            if self._in_use(device.id) or not self._selects(wish, position):
                continue
            self._count_attempt()
            if not self._take(current, slice_, device):
                continue
            if self._fill(wish, filled + 1, position + 1):
                return True
            self._give_back(current, device)
        return False

    def _in_use(self, device: DeviceId) -> bool:
        return device in self._problem.usage.exclusive or device in self._taken

    def _selects(self, wish: int, position: int) -> bool:
        known = self._selected.get((wish, position))
        if known is None:
            slice_, device = self._devices[position]
            selection = self._wishes[wish].selection
            known = selection.selects(slice_, device, self._problem.node)
            self._selected[wish, position] = known
        return known

    def _take(self, wish: _Wish, slice_: Slice, device: Device) -> bool:
        """Chooses the device if taints and constraints let it be chosen."""
        if device.unsupported:
            raise UnsupportedError(
                f"device {device.id} is a candidate, and Dragoon does not allocate devices with "
                f"{device.unsupported}"
            )
        if preventing(device, wish.request) is not None:
            return False
        constraints = self._constraints[wish.index]
        for position, constraint in enumerate(constraints):
            if not constraint.add(wish.request.name, device):
                for added in constraints[:position]:
                    added.remove(wish.request.name)
                return False
        self._taken.add(device.id)
        self._chosen[wish.index].append(Chosen(wish.request, slice_, device))
        return True

    def _give_back(self, wish: _Wish, device: Device) -> None:
        self._chosen[wish.index].pop()
        self._taken.remove(device.id)
        for constraint in self._constraints[wish.index]:
            constraint.remove(wish.request.name)

    def _count_attempt(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise SearchStoppedError("no solution found within the limit of attempts")
