"""What pods of a cluster ask for: whoever places one thinks of those that are to come.

Learned from the pods that are there, those that wait among them: what is asked for today is what
will be asked for tomorrow. Besides, one device of each kind counts a little, so that what nobody has
asked for yet is not broken for nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from dragoon.allocator.claims import claim_view
from dragoon.allocator.gang.mix import COUNTED, KINDS, Demand, Mix
from dragoon.allocator.gang.model import Amounts
from dragoon.allocator.model import Raw, Request
from dragoon.errors import DragoonError

_WISHES: Final = 64
"""Different wishes that are looked at, the most frequent ones: more change nothing (measured)."""
_SHARES: Final = 8_192
"""Weights are in shares of so many; each kind of device has one, which decides where nothing else
does. With more weight kinds that nobody asks for cost room (measured)."""
Wish = tuple[Request, tuple[tuple[str, int], ...]]
"""A request without its name, and what its pod takes of a node."""


def wishes_of(amounts: Amounts, claims: Iterable[Raw]) -> tuple[Wish, ...]:
    """What a pod wishes, request by request; of alternatives the first.

    Claims that cannot be read wish nothing, and neither do requests for all devices of a node or
    with admin access.
    """
    of_node = tuple((name, amounts[name]) for name in COUNTED if amounts.get(name, 0) > 0)
    found: list[Wish] = []
    for raw in claims:
        try:
            claim = claim_view(raw)
        except DragoonError:
            continue
        requests = (wanted.alternatives[0] for wanted in claim.requests)
        typical = (one for one in requests if not one.everything and not one.admin)
        found += ((_nameless(one), of_node) for one in typical)
    return tuple(found)


def mix_of(counts: Mapping[Wish, int]) -> Mix:
    """The most frequent wishes by their share, and one of each kind. counts: pods by their wish."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], repr(one[0])))[:_WISHES]
    total = sum(count for _, count in ordered)
    learned = (
        Demand(max(1, round(_SHARES * count / total)), request, amounts)
        for (request, amounts), count in ordered
    )
    return (*learned, *KINDS)


def _nameless(request: Request) -> Request:
    return replace(request, base="", name="", tolerations=(), raw_tolerations=())
