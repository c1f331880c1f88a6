"""Which blocks a node can take together, devices only, and with which devices.

One `Seats` stands for all nodes that are alike. A load says how many blocks of each shape; what was
found out about a load is remembered. From a load that is possible every smaller one is, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dragoon.allocator.amounts import CapacityError
from dragoon.allocator.gang.bounds import is_too_much
from dragoon.allocator.gang.fragments import NOTHING, Value
from dragoon.allocator.gang.offers import Offers, requests_of
from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.gang.worth import Usage
from dragoon.allocator.model import Claim, Device, PoolId, Request, Wanted
from dragoon.allocator.nodes import NodeSelectorError
from dragoon.allocator.problem import (
    AllDevicesError,
    Attempts,
    Chosen,
    SearchStoppedError,
    Solution,
    TooManyDevicesError,
)
from dragoon.allocator.search import solve_within
from dragoon.allocator.selection import SelectorError
from dragoon.allocator.usage import UNUSED, Hold
from dragoon.errors import UnsupportedError

Load = tuple[tuple[int, int], ...]
"""How many blocks of each shape, by number; none of nothing."""
EMPTY: Final[Load] = ()
_MISFITS: Final = (
    SelectorError,
    TooManyDevicesError,
    AllDevicesError,
    CapacityError,
    NodeSelectorError,
)
"""What ends an attempt on one node: the block cannot be there."""
_HOLDER: Final = "of another member"
"""Who holds what this plan gives, in explanations: blocks of a shape are not told apart here."""
_QUICK: Final = 2_000
"""Attempts of a joint search before thriftier ways are tried."""
_LONG: Final = 20_000
"""Attempts of the last joint search, and of that for one block."""


@dataclass(frozen=True, slots=True, eq=False)
class Seated:
    """A load with devices. picks: per block its shape and devices, in the order of the search."""

    usage: Usage
    picks: tuple[tuple[int, Solution], ...] = ()


@dataclass(slots=True, eq=False)
class Limits:
    """What all searches for one plan share. Mutable.

    unsure: what was said not to fit may fit, because a search gave up or could not judge.
    """

    attempts: Attempts
    unsure: bool = False


def added(load: Load, shape: int, count: int = 1) -> Load:
    """A load with more blocks of a shape."""
    counts = dict(load)
    counts[shape] = counts.get(shape, 0) + count
    return tuple(sorted(counts.items()))


class Seats:
    """One node, for all that are like it. Mutable: it remembers loads.

    usage: what is held of its pools before the gang comes.
    """

    def __init__(
        self, offers: Offers, usage: Usage, shapes: Sequence[Shape], limits: Limits
    ) -> None:
        self.offers = offers
        self._shapes = shapes
        self._limits = limits
        self._base = Seated({pool.id: usage.get(pool.id, UNUSED) for pool in offers.pools})
        self._loads: dict[Load, Seated | None] = {EMPTY: self._base}
        self._doubtful: set[Load] = set()
        self._rooms: dict[tuple[Load, int], int] = {}
        self._free: dict[Request, frozenset[Device] | None] = {}
        self._spare: dict[int, int] = {}

    def seat(self, load: Load) -> Seated | None:
        """The devices of a load, None if none were found; sets `unsure` if that may be wrong."""
        if load not in self._loads:
            before, self._limits.unsure = self._limits.unsure, False
            self._loads[load] = self._seated(load)
            if self._limits.unsure:
                self._doubtful.add(load)
            self._limits.unsure = before
        found = self._loads[load]
        if found is None and load in self._doubtful:
            self._limits.unsure = True
        return found

    def room(self, load: Load, shape: int, most: int) -> int:
        """How many more blocks of a shape fit beside a load, at most that many."""
        if not self._shapes[shape].claims:
            return most
        key = load, shape
        known = self._rooms.get(key, 0)
        while known < most and self.seat(added(load, shape, known + 1)) is not None:
            known += 1
        self._rooms[key] = max(known, self._rooms.get(key, 0))
        return min(known, most)

    def value(self, load: Load, left: Mapping[str, int]) -> Value:
        """What the node is worth under a load that fits. left: of its resources then."""
        seated, worth = self.seat(load), self.offers.worth
        return NOTHING if seated is None or worth is None else worth.value(seated.usage, left)

    def free(self, request: Request) -> frozenset[Device] | None:
        """The devices a request could have before the gang comes; None where some are shared."""
        if request not in self._free:
            self._free[request] = self.offers.free(request, self._base.usage)
        return self._free[request]

    def spare(self, shape: int) -> int:
        """How many devices the requests of a shape could have in all, without shared ones."""
        if shape not in self._spare:
            found = map(self.free, dict.fromkeys(requests_of(self._shapes[shape].claims)))
            self._spare[shape] = sum(len(devices) for devices in found if devices is not None)
        return self._spare[shape]

    def _seated(self, load: Load) -> Seated | None:
        """Adds the last block to what is known, else places all of them together."""
        number, count = load[-1]
        rest = load[:-1] if count == 1 else (*load[:-1], (number, count - 1))
        before = self.seat(rest)
        if before is None:
            return None
        shape = self._shapes[number]
        if not shape.claims:
            return Seated(before.usage, (*before.picks, (number, ())))
        found = self._one_more(before, shape)
        if found is not None or not before.picks:
            return found
        if is_too_much(self.free, [(self._shapes[one], count) for one, count in load]):
            return None
        return self._together([number for number, count in load for _ in range(count)])

    def _one_more(self, before: Seated, shape: Shape, *, thrifty: bool = False) -> Seated | None:
        """Places one block beside others, which stay as they are."""
        claims = tuple(map(_thrifty, shape.claims)) if thrifty else shape.claims
        solution: Solution | None = None
        linked = self.offers.linked(claims)
        if linked is not None:
            solution, _ = self._solve(linked, before.usage, {}, _QUICK)
        if solution is None:
            solution, gave_up = self._solve(claims, before.usage, {}, _LONG)
            self._limits.unsure |= gave_up
        if solution is None:
            return None
        usage = with_devices(before.usage, claims, solution, len(before.picks))
        return Seated(usage, (*before.picks, (shape.number, solution)))

    def _together(self, numbers: Sequence[int]) -> Seated | None:
        """Places blocks anew: jointly, then one by one and thriftily, then jointly for long."""
        before = self._limits.unsure
        found, gave_up = self._jointly(numbers, _QUICK)
        if not gave_up:
            return found
        found = self._thriftily(numbers)
        if found is None:
            found, gave_up = self._jointly(numbers, _LONG)
        self._limits.unsure = before or gave_up
        return found

    def _thriftily(self, numbers: Sequence[int]) -> Seated | None:
        """One by one, where more and more of the last take their last alternative first."""
        for frugal in _doubling(len(numbers)):
            seated: Seated | None = self._base
            for position, number in enumerate(numbers):
                if seated is not None:
                    thrifty = position >= len(numbers) - frugal
                    seated = self._one_more(seated, self._shapes[number], thrifty=thrifty)
            if seated is not None:
                return seated
        return None

    def _jointly(self, numbers: Sequence[int], attempts: int) -> tuple[Seated | None, bool]:
        """One search for all blocks, and whether it gave up."""
        claims: list[Claim] = []
        twins: dict[int, int] = {}
        starts: list[int] = []
        for position, number in enumerate(numbers):
            if position and numbers[position - 1] == number and self._shapes[number].claims:
                twins[len(claims)] = starts[-1]
            starts.append(len(claims))
            claims += self._shapes[number].claims
        solution, gave_up = self._solve(claims, self._base.usage, twins, attempts)
        if solution is None:
            return None, gave_up
        usage: Usage = self._base.usage
        picks: list[tuple[int, Solution]] = []
        for position, (number, start) in enumerate(zip(numbers, starts, strict=True)):
            own = self._shapes[number].claims
            part = solution[start : start + len(own)]
            usage = with_devices(usage, own, part, position)
            picks.append((number, part))
        return Seated(usage, tuple(picks)), gave_up

    def _solve(
        self, claims: Sequence[Claim], usage: Usage, twins: Mapping[int, int], attempts: int
    ) -> tuple[Solution | None, bool]:
        """A solution, and, without one, whether there may be one all the same."""
        problem = self.offers.problem(claims, usage, twins)
        if problem is None:
            return None, False
        shared = self._limits.attempts
        mine = Attempts(min(attempts, shared.left))
        start = mine.left
        try:
            solution = solve_within(problem, mine)
        except _MISFITS:
            return None, False
        except (SearchStoppedError, UnsupportedError):
            return None, True
        finally:
            shared.left -= start - max(mine.left, 0) + 1
        return solution, solution is None and self.offers.is_doubtful(claims)


def with_devices(
    usage: Usage, claims: Sequence[Claim], solution: Solution, block: int
) -> dict[PoolId, Any]:
    """The usage with the devices of a solution held, too.

    block: a number that tells shares apart.
    """
    holds: dict[PoolId, list[Hold]] = {}
    for claim, chosen in zip(claims, solution, strict=True):
        for position, one in enumerate(chosen):
            if not one.request.admin:
                share = f"{block}:{claim.uid}:{position}"
                holds.setdefault(one.candidate.pool, []).append(_hold(one, share))
    changed = dict(usage)
    for pool, new in holds.items():
        before = usage.get(pool, UNUSED)
        changed[pool] = before.changed((), new, before.serial)
    return changed


def _hold(chosen: Chosen, share: str) -> Hold:
    candidate = chosen.candidate
    if not candidate.device.facts.multiple:
        return Hold(candidate.pool, candidate.device.name, _HOLDER)
    consumed = tuple((use.name, use.taken) for use in candidate.uses)
    return Hold(candidate.pool, candidate.device.name, _HOLDER, share, consumed)


def _thrifty(claim: Claim) -> Claim:
    """The claim with the last of its alternatives first: mostly the smallest."""
    return replace(claim, requests=tuple(map(_reversed, claim.requests)))


def _reversed(wanted: Wanted) -> Wanted:
    return replace(wanted, alternatives=wanted.alternatives[::-1])


def _doubling(count: int) -> Iterator[int]:
    """1, 2, 4 and so on, and the count at last."""
    step = 1
    while step < count:
        yield step
        step *= 2
    yield count
