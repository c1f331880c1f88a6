"""What to do about a claim, given what the journal says of it and of all others: pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from dragoon.errors import DeviceLostError
from dragoon.prepare.guard import Holder, first_conflict, holder_of
from dragoon.prepare.journal import Entry


@dataclass(frozen=True, slots=True)
class Keep:
    """It is prepared: see that every step holds, and answer as before."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Begin:
    """Undo what is left of an earlier try, if there is one, then prepare."""

    leftover: Entry | None


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Another claim still holds the hardware, or this claim holds other devices than before."""

    holder: Holder


Decision = Keep | Begin | WaitFor


def decide(wanted: Entry, own: Entry | None, others: Iterable[Holder]) -> Decision:
    """Decides about one claim.

    wanted was planned in this boot; own is what the journal has for the same claim; others are the
    holders of this boot: what an earlier boot held is gone (case C20). Raises DeviceLostError when
    a slot holds another card than the one the claim was prepared on.
    """
    if own is not None and _allocated(own) == _allocated(wanted):
        _check_same_cards(wanted, own)
    if own is not None and own.answered_in(wanted.boot_id):
        # An allocation with other devices under the same UID: the pod that used the old ones was
        # force-deleted, and its container may live until its unprepare comes.
        same = _allocated(own) == _allocated(wanted)
        return Keep(own) if same else WaitFor(holder_of(own))
    conflict = first_conflict(holder_of(wanted), others)
    return Begin(own) if conflict is None else WaitFor(conflict)


def _allocated(entry: Entry) -> tuple[object, ...]:
    return tuple(held.allocated for held in entry.devices)


def _check_same_cards(wanted: Entry, own: Entry) -> None:
    for now, before in zip(wanted.devices, own.devices, strict=True):
        if now.uuid != before.uuid:
            raise DeviceLostError(
                f"claim {own.claim}: {before.device} was {before.uuid} when it was prepared, and "
                f"{now.uuid} sits in that slot now",
                hint="delete the pod: its claim is released, and a new one gets the new card",
            )
