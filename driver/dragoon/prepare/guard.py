"""The guard: who else holds on this node what a claim asks for.

The API server may be wrong: a force-deleted pod frees its claim seconds before its container is
gone (case C35), and two controllers may give one device away twice. The guard compares hardware,
not names. MIG slices and shares will narrow what a footprint covers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from dragoon.api.claims import ClaimRef
from dragoon.errors import CdiError
from dragoon.prepare import cdi
from dragoon.prepare.journal import Entry


@dataclass(frozen=True, slots=True)
class Footprint:
    """The hardware that a device occupies: a whole card, by its slot (if known) and by itself."""

    address: str | None
    uuid: str

    def overlaps(self, other: Self) -> bool:
        """The same card, or the same slot, which may hold another card since the last reboot."""
        same_slot = self.address is not None and self.address == other.address
        return same_slot or self.uuid == other.uuid


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim and all the hardware that it keeps from others."""

    claim: ClaimRef
    footprints: tuple[Footprint, ...]


def holder_of(entry: Entry) -> Holder:
    """What a journal entry holds, half prepared or not. Admin access keeps nothing from others."""
    return Holder(
        entry.claim,
        tuple(Footprint(h.address, h.uuid) for h in entry.devices if not h.admin_access),
    )


def holder_of_spec(uid: str, data: bytes) -> Holder:
    """What a claim holds whose journal entry cannot be read: its CDI spec names the cards."""
    try:
        uuids = cdi.device_uuids(cdi.decode(data))
    except CdiError:
        uuids = ()
    return Holder(ClaimRef("?", "?", uid), tuple(Footprint(None, uuid) for uuid in uuids))


def first_conflict(wanted: Holder, others: Iterable[Holder]) -> Holder | None:
    """The first other claim that holds a part of what is wanted; None if all of it is free."""
    for other in others:
        if other.claim.uid != wanted.claim.uid and any(
            mine.overlaps(theirs) for mine in wanted.footprints for theirs in other.footprints
        ):
            return other
    return None
