"""Values of the attribute nvlinkDomain: one for each group of linked cards. Pure.

A value is `<16 hex digits of a hash of the node's name>-<address of its lowest first member>`: no
other node can have it, and it says nothing about who is in the group today. A group keeps the
value that most of its members had, so a card that drops out does not rename the others.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from dragoon.api import names
from dragoon.errors import InvalidInputError
from dragoon.gpu.model import PciAddress
from dragoon.publish.attributes import NVLINK_DOMAIN


def assign(
    groups: Sequence[Sequence[PciAddress]], *, node: str, previous: Mapping[PciAddress, str]
) -> dict[PciAddress, str]:
    """The value of each card that is in a group.

    groups: sets of at least two cards, no card in two. previous: the values before; those that
    this node cannot have given are ignored. Where two groups want one value (a group fell apart),
    the one with more of its old members keeps it, then the one with the lower address.
    """
    prefix = _prefix(node)
    sets = sorted(tuple(sorted(group)) for group in groups)
    wishes = sorted(
        (-votes, position, value)
        for position, members in enumerate(sets)
        for value, votes in Counter(
            previous[address] for address in members if previous.get(address, "").startswith(prefix)
        ).items()
    )
    chosen: dict[int, str] = {}
    for _, position, value in wishes:
        if position not in chosen and value not in chosen.values():
            chosen[position] = value
    for position, members in enumerate(sets):
        if position not in chosen:
            taken = chosen.values()
            chosen[position] = next(v for v in _fresh(prefix, members[0]) if v not in taken)
    return {
        address: chosen[position] for position, members in enumerate(sets) for address in members
    }


def published(devices: Iterable[Mapping[str, Any]]) -> dict[PciAddress, str]:
    """The values that stand in raw devices, by the address these devices give."""
    values: dict[PciAddress, str] = {}
    for device in devices:
        said = device.get("attributes") or {}
        address = said.get(names.PCI_BUS_ID, {}).get("string")
        value = said.get(NVLINK_DOMAIN, {}).get("string")
        if address and value:
            try:
                values[PciAddress.parse(address)] = value
            except InvalidInputError:
                continue
    return values


def _prefix(node: str) -> str:
    return hashlib.sha256(node.encode()).hexdigest()[:16] + "-"


def _fresh(prefix: str, lowest: PciAddress) -> Iterator[str]:
    """Names for a new group; the plain one may still belong to the group its card left."""
    yield prefix + lowest.slug
    for number in count(2):
        yield f"{prefix}{lowest.slug}-{number}"
