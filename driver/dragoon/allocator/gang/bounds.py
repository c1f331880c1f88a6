"""Sums that prove, without a search, that something does not fit.

Only requests count that want devices as a whole and have no alternatives: those need as many
different devices as they ask for.
"""

from collections.abc import Callable, Iterable, Mapping

from dragoon.allocator.gang.shapes import Shape
from dragoon.allocator.model import Device, Request

Free = Callable[[Request], frozenset[Device] | None]
"""The devices that a request could have; None where devices can be shared, so that nothing is
known."""


def demand(blocks: Iterable[tuple[Shape, int]]) -> dict[Request, int]:
    """How many devices that many blocks of each shape want, by equal requests."""
    wanted: dict[Request, int] = {}
    for shape, count in blocks:
        for one in (one for claim in shape.claims for one in claim.requests):
            request = one.alternatives[0]
            if not (one.prioritized or request.everything or request.admin):
                wanted[request] = wanted.get(request, 0) + count * request.count
    return wanted


def is_too_much(free: Free, blocks: Iterable[tuple[Shape, int]]) -> bool:
    """Whether blocks want more devices of one node than there are.

    Requests are added up from the pickiest on: together they need their number of devices, and all
    that any of them could have is what there is.
    """
    found = [
        (its, number)
        for request, number in demand(blocks).items()
        if (its := free(request)) is not None
    ]
    devices: frozenset[Device] = frozenset()
    needed = 0
    for its, number in sorted(found, key=lambda one: len(one[0])):
        devices |= its
        needed += number
        if needed > len(devices):
            return True
    return False


def is_short(wanted: Mapping[Request, int], nodes: Iterable[tuple[Free, int]]) -> bool:
    """Whether nodes have too few devices for all that is wanted of them.

    nodes: each with a count.
    """
    left = sum(wanted.values())
    counting = list(wanted)
    for free, count in nodes:
        devices: frozenset[Device] = frozenset()
        for request in counting:
            its = free(request)
            if its is None:
                return False
            devices |= its
        left -= count * len(devices)
        if left <= 0:
            return False
    return left > 0
