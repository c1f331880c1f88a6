"""The guard, and what to do about a claim that the journal knows."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from dragoon.api.claims import ClaimRef
from dragoon.errors import DeviceLostError
from dragoon.prepare import cdi
from dragoon.prepare.deciding import Begin, Keep, WaitFor, decide
from dragoon.prepare.guard import Footprint, Holder, first_conflict, holder_of, holder_of_spec
from dragoon.prepare.journal import Entry, HeldDevice, State
from tests.unit.prepare.scene import POOL, device, gpu


def held(number: int, **changes: Any) -> HeldDevice:
    one = HeldDevice("gpu", POOL, device(number), f"0000:1{number}:00.0", gpu(number).uuid, "id")
    return msgspec.structs.replace(one, **changes)


def entry(uid: str, *devices: HeldDevice, **changes: Any) -> Entry:
    one = Entry(
        namespace="team-a",
        name=f"claim-{uid}",
        uid=uid,
        boot_id="now",
        state=State.PREPARING,
        devices=devices,
        steps=(),
    )
    return msgspec.structs.replace(one, **changes)


def test_claims_on_different_cards_do_not_meet() -> None:
    assert first_conflict(holder_of(entry("a", held(0))), [holder_of(entry("b", held(1)))]) is None


@pytest.mark.parametrize(
    "other",
    [
        held(0),
        held(0, uuid="GPU-replaced"),
        held(0, address="0000:77:00.0"),
        held(0, request="x", pool="y", device="gpu-by-another-name"),
    ],
)
def test_the_same_slot_or_the_same_card_is_a_conflict(other: HeldDevice) -> None:
    holder = holder_of(entry("b", held(1), other))
    found = first_conflict(holder_of(entry("a", held(0))), [holder])
    assert found == Holder(holder.claim, holder.footprints[1:]), "and only what is in the way"


def test_a_claim_does_not_stand_in_its_own_way() -> None:
    mine = holder_of(entry("a", held(0)))
    assert first_conflict(mine, [mine]) is None


@pytest.mark.parametrize("which", ["mine", "theirs"])
def test_admin_access_is_exempt(which: str) -> None:
    mine = held(0, admin_access=which == "mine")
    theirs = held(0, admin_access=which == "theirs")
    assert first_conflict(holder_of(entry("a", mine)), [holder_of(entry("b", theirs))]) is None


def test_a_spec_alone_tells_what_is_held() -> None:
    edits = cdi.Edits(env=(cdi.device_variable(device(0), gpu(0).uuid),))
    spec = cdi.claim_spec("gpu.dragoon.dev/claim", [cdi.Device("n", edits)], cdi.Edits())
    holder = holder_of_spec("b", cdi.encode(spec))
    assert holder.footprints == (Footprint(None, gpu(0).uuid),)
    assert first_conflict(holder_of(entry("a", held(0))), [holder]) == holder
    assert first_conflict(holder_of(entry("a", held(1))), [holder]) is None
    assert holder_of_spec("b", b"torn").footprints == ()


WANTED = entry("a", held(0))


def test_a_new_claim_begins() -> None:
    assert decide(WANTED, None, []) == Begin(None)


def test_a_prepared_claim_is_kept_whatever_others_hold() -> None:
    own = entry("a", held(0), state=State.PREPARED)
    assert decide(WANTED, own, [holder_of(entry("b", held(0)))]) == Keep(own)


def test_a_half_prepared_claim_begins_again() -> None:
    assert decide(WANTED, entry("a", held(0)), []) == Begin(entry("a", held(0)))


def test_a_claim_waits_for_whoever_holds_its_card() -> None:
    other = holder_of(entry("b", held(0)))
    assert decide(WANTED, None, [other]) == WaitFor(other)


def test_c20_a_claim_of_an_earlier_boot_is_done_again() -> None:
    own = entry("a", held(0), state=State.PREPARED, boot_id="before")
    assert decide(WANTED, own, []) == Begin(own)


def test_c20_a_claim_of_an_earlier_boot_waits_like_a_new_one() -> None:
    own = entry("a", held(0), state=State.PREPARED, boot_id="before")
    other = holder_of(entry("b", held(0)))
    assert decide(WANTED, own, [other]) == WaitFor(other)


@pytest.mark.parametrize("boot_id", ["now", "before"])
@pytest.mark.parametrize("state", list(State))
def test_a_slot_with_another_card_is_not_silently_used(boot_id: str, state: State) -> None:
    own = entry("a", held(0, uuid="GPU-old"), state=state, boot_id=boot_id)
    with pytest.raises(DeviceLostError, match=f"was GPU-old.*{gpu(0).uuid} sits"):
        decide(WANTED, own, [])


def test_other_devices_under_the_same_uid_wait_for_the_unprepare_of_the_old_ones() -> None:
    own = entry("a", held(1), state=State.PREPARED)
    assert decide(WANTED, own, []) == WaitFor(holder_of(own))


def test_other_devices_that_were_never_answered_are_rolled_back() -> None:
    assert decide(WANTED, entry("a", held(1)), []) == Begin(entry("a", held(1)))


def test_a_holder_of_nothing_is_in_nobodys_way() -> None:
    nobody = Holder(ClaimRef("n", "n", "b"), ())
    assert first_conflict(holder_of(WANTED), [nobody]) is None
    assert first_conflict(replace(nobody, claim=WANTED.claim), [holder_of(WANTED)]) is None
