"""The guard: who else holds on this node what a claim asks for.

The API server may be wrong: a force-deleted pod frees its claim seconds before its container is
gone (case C35), and two controllers may give one device away twice. The guard compares hardware,
not names: a whole card shuts out everything else on it, shares stand together while their sum fits,
MIG instances while they have no memory slice in common.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from dragoon.api.claims import ClaimRef
from dragoon.errors import CdiError
from dragoon.gpu import naming
from dragoon.prepare import cdi
from dragoon.prepare.journal import Entry
from dragoon.prepare.mig import MigPart
from dragoon.prepare.shares import CORES, Share

Part = Share | MigPart
"""What can be held of a card besides all of it."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The hardware that a device occupies: a card, by its slot (if known) and by itself.

    part: None for the whole card, also where it is not known how much is held.
    """

    address: str | None
    uuid: str
    part: Part | None = None

    def same_card(self, other: Self) -> bool:
        """The same card, or the same slot, which may hold another card since the last reboot."""
        same_slot = self.address is not None and self.address == other.address
        return same_slot or self.uuid == other.uuid

    def excludes(self, other: Self) -> bool:
        """Whether the two cannot be on one card, however small they are."""
        match self.part, other.part:
            case Share(), Share():
                return False
            case MigPart() as mine, MigPart() as theirs:
                return mine.placement.overlaps(theirs.placement)
        return True

    def __str__(self) -> str:
        """For messages: which part of which card."""
        card = f"GPU {self.address or self.uuid}"
        match self.part:
            case MigPart() as part:
                return f"{part} of {card}"
            case Share():
                return f"a share of {card}"
        return card


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim and all the hardware that it keeps from others."""

    claim: ClaimRef
    footprints: tuple[Footprint, ...]


def holder_of(entry: Entry) -> Holder:
    """What a journal entry holds, half prepared or not. Admin access keeps nothing from others."""
    return Holder(
        entry.claim,
        tuple(
            Footprint(held.address, held.uuid, held.share or held.mig)
            for held in entry.devices
            if not held.admin_access
        ),
    )


def holder_of_spec(uid: str, data: bytes) -> Holder:
    """What a claim holds whose journal entry cannot be read: its CDI spec names the cards.

    It does not say how much of each: so it counts as all (fail closed).
    """
    try:
        given = cdi.devices_given(cdi.decode(data))
    except CdiError:
        given = ()
    return Holder(
        ClaimRef("?", "?", uid),
        tuple(Footprint(_slot(device), uuid) for device, uuid in given),
    )


def first_conflict(wanted: Holder, others: Iterable[Holder]) -> Holder | None:
    """The first other claim that holds a part of what is wanted, and the part; None if all is free.

    Where shares of several claims leave too little together, it is the first of them: any that
    lets go may make room.
    """
    rivals = [one for one in others if one.claim.uid != wanted.claim.uid]
    for mine in wanted.footprints:
        there = [
            (rival, theirs)
            for rival in rivals
            for theirs in rival.footprints
            if mine.same_card(theirs)
        ]
        for rival, theirs in there:
            if mine.excludes(theirs):
                return Holder(rival.claim, (theirs,))
        together = [one for one in wanted.footprints if mine.same_card(one)]
        if there and not fits([*together, *(theirs for _, theirs in there)]):
            rival, theirs = there[0]
            return Holder(rival.claim, (theirs,))
    return None


def fits(footprints: Sequence[Footprint]) -> bool:
    """Whether these, all on one card, are no more than it has.

    The first one says how much that is.
    """
    shares = [one.part for one in footprints if isinstance(one.part, Share)]
    memory = sum(share.memory for share in shares)
    cores = sum(share.cores for share in shares)
    return not shares or (memory <= shares[0].card_memory and cores <= CORES)


def _slot(device: str) -> str | None:
    """A part of a card has a UUID of its own, so the card is told by the device's name."""
    address = naming.address_of(device)
    return None if address is None else str(address)
