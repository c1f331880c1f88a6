"""Which node gets how many blocks of which shape.

First greedily (`filling`): the shapes that are hardest to place first. Where that fails with several
shapes, some other orders of them are tried, then every way, and each state that failed is
remembered. With one shape greedy is exact: its nodes do not depend on each other.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dragoon.allocator.gang.bounds import demand, is_short
from dragoon.allocator.gang.filling import Short, fill
from dragoon.allocator.gang.seats import Limits
from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.gang.terrain import Bin
from dragoon.allocator.problem import SearchStoppedError

_ORDERS: Final = 8
"""Other orders of the shapes that are tried greedily."""
_DEPTH: Final = 400
"""Blocks that the exact search places one within the other: Python's stack bounds it."""


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A full placement. bins: all that were open to it, by the name of their nodes."""

    bins: tuple[Bin, ...]

    @property
    def used(self) -> tuple[Bin, ...]:
        """The bins that have a load."""
        return tuple(one for one in self.bins if one.load)


class Wish(NamedTuple):
    """A block of a shape that is to be on a certain node, if that can be."""

    shape: int
    node: str


def pack(
    fresh: Callable[[], list[Bin]],
    shapes: Sequence[Shape],
    needs: Sequence[int],
    limits: Limits,
    wishes: Sequence[Wish] = (),
) -> Packed | Short:
    """Places blocks of the shapes, as many of each as needed.

    fresh: makes the empty bins, in the order of their names.
    """
    before, limits.unsure = limits.unsure, False
    bins = fresh()
    short = _alone(bins, shapes, needs) or _too_much(bins, shapes, needs)
    if short is None:
        short = _wished(bins, shapes, needs, wishes)
        if short is not None and wishes:
            bins = fresh()
            short = fill(bins, shapes, needs)
        if short is not None and len(shapes) > 1:
            bins, short = _reordered(fresh, shapes, needs, short)
        if short is not None:
            bins, short = _exactly(fresh, shapes, needs, limits, short)
        if short is None:
            limits.unsure = before
            return Packed(tuple(bins))
    sure = short.sure and not limits.unsure
    limits.unsure |= before
    return short._replace(sure=sure)


def _alone(bins: Sequence[Bin], shapes: Sequence[Shape], needs: Sequence[int]) -> Short | None:
    """The first shape that does not fit even if it has all nodes for itself."""
    rooms: dict[tuple[Any, int], int] = {}
    for shape in shapes:
        need = needs[shape.number]
        total = 0
        for one in bins:
            key = one.kind, shape.number
            if key not in rooms:
                rooms[key] = one.room(shape, need)
            total += rooms[key]
            if total >= need:
                break
        if total < need:
            return Short(shape.number, total, sure=True)
    return None


def _too_much(bins: Sequence[Bin], shapes: Sequence[Shape], needs: Sequence[int]) -> Short | None:
    """All shapes together want more devices, or more of a resource, than there is."""
    if len(shapes) < 2:
        return None
    kinds = Counter(one.kind for one in bins)
    stand_ins = {one.kind: one for one in bins}
    wanted = demand(zip(shapes, needs, strict=True))
    nodes = [(stand_ins[kind].seats.free, count) for kind, count in kinds.items()]
    lacks = is_short(wanted, nodes)
    for resource in bins[0].left if bins else ():
        needed = sum(
            need * shape.requests.get(resource, 0)
            for shape, need in zip(shapes, needs, strict=True)
        )
        lacks = lacks or needed > sum(max(0, one.left[resource]) for one in bins)
    return _greedily_short(bins, shapes, needs) if lacks else None


def _greedily_short(
    bins: Sequence[Bin], shapes: Sequence[Shape], needs: Sequence[int]
) -> Short | None:
    """For which shape there is no room when one after the other is placed."""
    short = fill(bins, shapes, needs)
    return None if short is None else short._replace(sure=True)


def _wished(
    bins: Sequence[Bin], shapes: Sequence[Shape], needs: Sequence[int], wishes: Sequence[Wish]
) -> Short | None:
    """Places blocks where they are wished to be, the others greedily."""
    by_name = {one.node.name: one for one in bins}
    left = list(needs)
    for wish in wishes:
        found = by_name.get(wish.node)
        if found is not None and left[wish.shape] and found.room(shapes[wish.shape], 1):
            found.add(shapes[wish.shape], 1)
            left[wish.shape] -= 1
    return fill(bins, shapes, left)


def _reordered(
    fresh: Callable[[], list[Bin]], shapes: Sequence[Shape], needs: Sequence[int], short: Short
) -> tuple[list[Bin], Short | None]:
    """Places greedily again, each time with the shape for which there was no room first."""
    order = list(shapes)
    bins: list[Bin] = []
    failed: Short | None = short
    for _ in range(_ORDERS):
        if failed is None:
            break
        late = shapes[failed.shape]
        order.remove(late)
        order.insert(0, late)
        bins = fresh()
        failed = fill(bins, order, needs)
    return bins, None if failed is None else short


def _exactly(
    fresh: Callable[[], list[Bin]],
    shapes: Sequence[Shape],
    needs: Sequence[int],
    limits: Limits,
    short: Short,
) -> tuple[list[Bin], Short | None]:
    """Tries every way; None beside the bins when one was found."""
    bins = fresh()
    if sum(needs) > _DEPTH:
        return bins, short
    try:
        found = _Exact(bins, shapes, needs, limits).place(0, needs[0])
    except SearchStoppedError:
        return bins, short
    return bins, None if found else short._replace(sure=True)


class _Exact:
    """The search with backtracking. Mutable: the bins follow it."""

    def __init__(
        self, bins: Sequence[Bin], shapes: Sequence[Shape], needs: Sequence[int], limits: Limits
    ) -> None:
        self._bins = bins
        self._shapes = shapes
        self._needs = needs
        self._limits = limits
        self._failed: set[Any] = set()

    def place(self, number: int, left: int) -> bool:
        """Places the rest of a shape, and all shapes after it; the bins then have the loads."""
        while not left:
            number += 1
            if number == len(self._shapes):
                return True
            left = self._needs[number]
        state = (
            number,
            left,
            frozenset(Counter((one.kind, one.load) for one in self._bins if one.load).items()),
        )
        if state in self._failed or not self._may_suffice(number, left):
            return False
        shape = self._shapes[number]
        tried: set[Any] = set()
        for one in sorted(self._bins, key=lambda one: not one.is_used):
            self._limits.attempts.count()
            key = one.kind, one.load
            if key in tried or not one.room(shape, 1):
                continue
            tried.add(key)
            one.add(shape, 1)
            if self.place(number, left - 1):
                return True
            one.add(shape, -1)
        self._failed.add(state)
        return False

    def _may_suffice(self, number: int, left: int) -> bool:
        """Whether each shape that is left could still be placed if it were alone."""
        for shape in self._shapes[number:]:
            needed = left if shape.number == number else self._needs[shape.number]
            for one in self._bins:
                needed -= one.room(shape, needed)
                if needed <= 0:
                    break
            if needed > 0:
                return False
        return True
