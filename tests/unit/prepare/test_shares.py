"""What a share consumes, read exactly; the footprints of shares; entries of an older journal."""

import hashlib
import json
from typing import Any

import msgspec
import pytest

from dragoon.api.claims import ClaimRef, allocation
from dragoon.api.enforcement import Tier
from dragoon.errors import ClaimError, InvalidInputError
from dragoon.prepare import cdi, shares
from dragoon.prepare.effects_memory import MemoryDisk, MemoryEffects
from dragoon.prepare.guard import Footprint, Holder, first_conflict, fits, holder_of, holder_of_spec
from dragoon.prepare.journal import Entry, Journal, State
from dragoon.prepare.shares import Amount, Share
from tests.unit.prepare.scene import DRIVER, claim_object, gpu
from tests.unit.prepare.sharing import CARD, GIB, PATHS, share
from tests.unit.prepare.test_deciding import entry, held

REF = ClaimRef("team-a", "one", "0a")
HERE = gpu(0, memory_bytes=CARD)


def read(found: Any, card: Any = HERE) -> Amount:
    raw = claim_object("one", found)
    result = allocation(raw)
    assert result is not None
    return shares.amount(REF, result.devices[0], card, DRIVER)


def consuming(**amounts: str) -> dict[str, Any]:
    return share(consumedCapacity=amounts)


def test_quantities_are_read_exactly() -> None:
    assert read(share(0, "4Gi", cores="25")) == Amount(4 * GIB, 25)
    assert read(consuming(memory="4294967296")) == Amount(4 * GIB, 0)
    assert read(consuming(memory="12e9")) == Amount(12 * 10**9, 0)
    assert read(consuming(memory="12G", cores="100")) == Amount(12 * 10**9, 100)
    assert read(share(consumedCapacity={f"{DRIVER}/memory": "1Gi"})) == Amount(GIB, 0)


@pytest.mark.parametrize(
    ("amounts", "told"),
    [
        ({}, "memory: found nothing"),
        ({"cores": "10"}, "memory: found nothing"),
        ({"memory": "0"}, "found 0 bytes, allowed are 536870912 to"),
        ({"memory": "-4Gi"}, "found -4294967296 bytes"),
        ({"memory": "1Mi"}, "found 1048576 bytes"),
        ({"memory": "511Mi"}, "found 535822336 bytes"),
        ({"memory": "25Gi"}, f"allowed are 536870912 to {CARD}"),
        ({"memory": "0.5"}, "memory: found '0.5', allowed is a whole number"),
        ({"memory": "4 GiB"}, "memory: .*4 GiB"),
        ({"memory": "4Gi", "cores": "101"}, "cores: found 101, allowed are 1 to 100"),
        ({"memory": "4Gi", "cores": "-1"}, "cores: found -1"),
        ({"memory": "4Gi", "cores": "2500m"}, "cores: found '2500m'"),
    ],
)
def test_c23_a_share_that_cannot_be_is_refused_before_anything_is_done(
    amounts: dict[str, str], told: str
) -> None:
    with pytest.raises(ClaimError, match=told) as caught:
        read(consuming(**amounts))
    assert not caught.value.retryable
    assert str(REF) in str(caught.value)


def test_c04_memory_of_a_card_that_does_not_say_its_size_is_refused() -> None:
    unknown = gpu(0, memory_bytes=None)
    with pytest.raises(ClaimError, match="the card does not say how much it has"):
        read(share(), unknown)
    assert read(consuming(cores="10"), unknown) == Amount(0, 10)


@pytest.mark.parametrize("where", ["exactly", "firstAvailable"])
def test_c23_asking_for_no_cores_is_refused_with_what_it_would_mean(where: str) -> None:
    claim = claim_object("one", share())
    asked: Any = {"deviceClassName": "c", "capacity": {"requests": {"memory": "4Gi", "cores": "0"}}}
    claim["spec"]["devices"]["requests"] = [
        {"name": "slice", where: asked if where == "exactly" else [{"name": "x", **asked}]}
    ]
    with pytest.raises(InvalidInputError, match=rf"requests\[0\]\.{where}.*cores: found '0'"):
        shares.check_asked(claim, REF)
    asked["capacity"]["requests"].pop("cores")
    shares.check_asked(claim, REF)


def part(number: int, memory: int, cores: int = 0, **changes: Any) -> Any:
    found = Share(memory * GIB, cores, CARD, Tier.HAMI)
    return held(number, share=found, device="gpu-x-shared", **changes)


def conflict(mine: Any, *others: Any) -> str | None:
    holders = [holder_of(entry(f"other-{n}", one)) for n, one in enumerate(others)]
    found = first_conflict(holder_of(entry("mine", *mine)), holders)
    return found.claim.uid if found else None


def test_c35_shares_stand_together_while_their_sum_fits() -> None:
    assert conflict([part(0, 12)], part(0, 12)) is None
    assert conflict([part(0, 12)], part(0, 6), part(0, 6)) is None
    assert conflict([part(0, 12)], part(0, 6), part(0, 7)) == "other-0"
    assert conflict([part(0, 6), part(0, 6)], part(0, 13)) == "other-0"
    assert conflict([part(0, 12)], part(1, 24)) is None


def test_c26_ceilings_of_compute_count_too() -> None:
    assert conflict([part(0, 1, 50)], part(0, 1, 50)) is None
    assert conflict([part(0, 1, 50)], part(0, 1, 51)) == "other-0"
    assert conflict([part(0, 1, 0)], part(0, 1, 100)) is None


def test_a_share_and_the_whole_card_exclude_each_other() -> None:
    assert conflict([part(0, 1)], held(0)) == "other-0"
    assert conflict([held(0)], part(0, 1)) == "other-0"
    assert conflict([part(0, 1)], held(0, admin_access=True)) is None
    assert conflict([part(0, 1)], part(0, 24, admin_access=True)) is None


def test_sums_are_not_limited_to_64_bits() -> None:
    marks = [Footprint("a", "u", Share(2**63, 0, 2**64, Tier.HAMI)) for _ in range(2)]
    assert fits(marks)
    assert not fits([*marks, Footprint("a", "u", Share(1, 0, 2**64, Tier.HAMI))])


def test_an_entry_of_which_only_the_spec_is_left_counts_as_the_whole_card() -> None:
    edits = cdi.Edits(env=(cdi.device_variable("gpu-x-shared", gpu(0).uuid),))
    spec = cdi.claim_spec("gpu.dragoon.dev/claim", [cdi.Device("n", edits)], cdi.Edits())
    unreadable: Holder = holder_of_spec("b", cdi.encode(spec))
    mine = holder_of(entry("mine", part(0, 1)))
    assert first_conflict(mine, [unreadable]) == unreadable


# An entry as version 1 wrote it, before there were shares.
VERSION_1: dict[str, Any] = {
    "version": 1,
    "namespace": "team-a",
    "name": "one",
    "uid": "7d3c6a3e",
    "bootId": "boot-1",
    "state": "prepared",
    "devices": [
        {
            "request": "gpu",
            "pool": "node-a/gpu",
            "device": "gpu-0000-10-00-0",
            "address": "0000:10:00.0",
            "uuid": "GPU-00000000-0000-0000-0000-000000000000",
            "cdiId": "gpu.dragoon.dev/claim=7d3c6a3e_gpu_gpu-0000-10-00-0",
        }
    ],
    "steps": [{"step": "marker", "device": "gpu-0000-10-00-0", "content": "x\n"}],
}


def test_c32_an_entry_of_version_1_is_read_as_whole_cards_and_carried_over() -> None:
    effects = MemoryEffects(MemoryDisk())
    effects.make_folder(PATHS.journal_folder, 0o700)
    body = json.dumps(VERSION_1).encode()
    checksum = hashlib.sha256(body).hexdigest()
    file = PATHS.journal("7d3c6a3e")
    effects.write(file, b'{"checksum":"sha256:%s","entry":%s}' % (checksum.encode(), body), 0o600)
    journal = Journal(effects, PATHS)

    found = journal.read("7d3c6a3e")

    assert isinstance(found, Entry)
    assert (found.version, found.pod_uid, found.state) == (3, "", State.PREPARED)
    assert found.devices[0].share is None
    mine = holder_of(entry("mine", part(0, 1)))
    assert first_conflict(mine, [holder_of(found)]) == holder_of(found)
    journal.complete(found)
    stored = json.loads(effects.read(file) or b"")["entry"]
    assert stored["version"] == 3
    assert stored["steps"] == VERSION_1["steps"]


def test_a_share_in_an_entry_comes_back_as_it_was() -> None:
    effects = MemoryEffects(MemoryDisk())
    effects.make_folder(PATHS.journal_folder, 0o700)
    one = entry("0a", part(0, 4, 25), pod_uid="p-1")
    Journal(effects, PATHS).begin(one)
    assert Journal(effects, PATHS).read("0a") == one


def test_the_struct_of_a_share_is_small_in_the_journal() -> None:
    encoded = msgspec.json.encode(Share(GIB, 0, CARD, Tier.HAMI))
    assert json.loads(encoded) == {
        "memory": GIB,
        "cores": 0,
        "cardMemory": CARD,
        "tier": "hami",
    }
