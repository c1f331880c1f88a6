"""The pods to be expected, as records: what `demand` learns and `valuing` measures with."""

from dataclasses import dataclass
from typing import Final

from dragoon.allocator.model import Request


@dataclass(frozen=True, slots=True)
class Kind:
    """Devices of a size, whoever made them. least, most: of a card, in thousandths; count: linked.

    shared: a share of that much of a device that is shared.
    """

    least: int
    most: int
    count: int = 1
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Demand:
    """A wish that is typical, its weight, and what its pods take of a node beside the devices."""

    weight: int
    wish: Request | Kind
    amounts: tuple[tuple[str, int], ...] = ()


COUNTED: Final = ("cpu", "memory")
"""Resources of a node that are looked at."""
Mix = tuple[Demand, ...]
"""What is to be expected; nothing: devices and nodes are not measured by what is lost of them."""

KINDS: Final[Mix] = tuple(
    Demand(1, kind)
    for kind in (
        *(Kind(900, 1000, count) for count in (1, 2, 4, 8)),
        *(Kind(least, most) for least, most in ((400, 899), (200, 399), (1, 199))),
        Kind(250, 250, shared=True),
    )
)
"""Whole cards alone and linked, parts of three sizes, a quarter of a shared card: each as
likely."""
