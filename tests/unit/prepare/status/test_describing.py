"""What `status.devices` says, decided from the journal or a refusal alone."""

from dataclasses import replace
from typing import Any

import pytest

from dragoon.api import device_status
from dragoon.api.enforcement import Tier
from dragoon.errors import (
    ApiUnavailableError,
    ClaimGoneError,
    DeviceBusyError,
    DragoonError,
    UnknownDeviceError,
)
from dragoon.gpu.model import PciAddress
from dragoon.prepare.enforcement.errors import TierUnavailableError
from dragoon.prepare.journal import Entry, HeldDevice, State
from dragoon.prepare.mig import MigPart
from dragoon.prepare.shares import Share
from dragoon.prepare.status.describing import devices_after, is_news
from dragoon.prepare.status.outcome import Mark, Outcome, Prepared, Refused, Released
from tests.unit.prepare.scene import DRIVER, POOL, claim_object, device, gpu, result
from tests.unit.prepare.sharing import share, shared

NOW = "2026-11-29T19:00:00Z"
LATER = "2026-11-29T19:05:00Z"


def held(number: int = 0, **changes: Any) -> HeldDevice:
    fields = {
        "request": "gpu",
        "pool": POOL,
        "device": device(number),
        "address": str(gpu(number).address),
        "uuid": gpu(number).uuid,
        "cdi_id": "x/y=z",
    }
    return HeldDevice(**(fields | changes))


def prepared(*devices: HeldDevice) -> Prepared:
    return Prepared(
        Entry(
            namespace="team-a",
            name="a",
            uid="u1",
            boot_id="b",
            state=State.PREPARED,
            devices=devices,
            steps=(),
        )
    )


def refused(error: DragoonError, on_refusal: str = device_status.REPORT) -> Refused:
    found = Refused.by(error, on_refusal=on_refusal)
    assert found is not None
    return found


def after(
    claim: dict[str, Any], outcome: Outcome, *marks: Mark, now: str = NOW
) -> list[dict[str, Any]] | None:
    return devices_after(claim, DRIVER, outcome, marks, now=now)


def entries(
    claim: dict[str, Any], outcome: Outcome, *marks: Mark, now: str = NOW
) -> list[dict[str, Any]]:
    """The entries that are to be written; something must be."""
    found = after(claim, outcome, *marks, now=now)
    assert found is not None
    return found


def conditions(entry: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in entry["conditions"]}


def test_a_whole_gpu_is_ready_and_all_of_it_is_the_claims() -> None:
    (entry,) = entries(claim_object("a", result()), prepared(held()))
    assert (entry["driver"], entry["pool"], entry["device"]) == (DRIVER, POOL, device(0))
    assert "shareID" not in entry
    assert conditions(entry) == {"Ready": ("True", "Prepared"), "Enforced": ("True", "WholeGpu")}
    assert entry["data"] == {"gpuUUID": gpu(0).uuid}
    assert all(one["lastTransitionTime"] == NOW for one in entry["conditions"])


@pytest.mark.parametrize(
    ("tier", "enforced"),
    [
        (Tier.HAMI, ("True", "Hami")),
        (Tier.CGROUP, ("True", "Cgroup")),
        (Tier.NONE, ("False", "NotEnforced")),
    ],
)
def test_a_share_says_its_limits_and_whether_somebody_keeps_it_to_them(
    tier: Tier, enforced: tuple[str, str]
) -> None:
    part = Share(memory=4 << 30, cores=25, card_memory=24 << 30, tier=tier, container="main")
    mine = held(device=shared(0), share_id="s-1", share=part)
    (entry,) = entries(claim_object("a", share(0, cores="25")), prepared(mine))
    assert entry["shareID"] == "s-1"
    assert conditions(entry)["Enforced"] == enforced
    assert entry["data"] == {
        "gpuUUID": gpu(0).uuid,
        "tier": tier.value,
        "memoryLimit": "4Gi",
        "coresLimit": 25,
        "container": "main",
    }


def test_a_share_without_a_ceiling_may_compute_with_all_of_the_card() -> None:
    part = Share(memory=1, cores=0, card_memory=24 << 30, tier=Tier.NONE)
    mine = held(device=shared(0), share_id="s-1", share=part)
    (entry,) = entries(claim_object("a", share()), prepared(mine))
    assert entry["data"]["coresLimit"] == 100


def test_a_mig_instance_says_its_profile_and_uuid() -> None:
    mine = held(device=f"{device(0)}-mig-3g40gb-4", mig=MigPart("3g.40gb", 4, 4, uuid="MIG-1"))
    (entry,) = entries(claim_object("a", result(device=mine.device)), prepared(mine))
    assert conditions(entry)["Enforced"] == ("True", "Mig")
    assert entry["data"] == {
        "gpuUUID": gpu(0).uuid,
        "tier": "mig",
        "migProfile": "3g.40gb",
        "migUUID": "MIG-1",
    }


def test_admin_access_to_a_shared_device_is_not_limited() -> None:
    mine = held(device=shared(0), admin_access=True)
    claim = claim_object("a", result(device=shared(0), adminAccess=True))
    (entry,) = entries(claim, prepared(mine))
    assert conditions(entry)["Enforced"] == ("False", "AdminAccess")
    assert entry["data"] == {"gpuUUID": gpu(0).uuid}


def test_nothing_is_written_that_is_there_already() -> None:
    claim = claim_object("a", result(0), result(1))
    claim["status"]["devices"] = entries(claim, prepared(held(0), held(1)))
    assert after(claim, prepared(held(0), held(1)), now=LATER) is None
    claim["status"]["devices"].reverse()
    assert after(claim, prepared(held(0), held(1)), now=LATER) is None


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    claim = claim_object("a", result())
    claim["status"]["devices"] = entries(claim, refused(DeviceBusyError("held by b")))
    (same,) = entries(claim, refused(DeviceBusyError("held by c")), now=LATER)
    assert same["conditions"][0]["lastTransitionTime"] == NOW
    assert same["conditions"][0]["message"].startswith("held by c (")
    (ready,) = entries(claim, prepared(held()), now=LATER)
    assert ready["conditions"][0]["lastTransitionTime"] == LATER


def test_a_final_refusal_says_the_code_the_hint_and_what_the_administrator_wants() -> None:
    error = UnknownDeviceError("no such card", hint="delete the pod")
    claim = claim_object("a", result(0), result(1))
    found = entries(claim, refused(error, device_status.EVICT))
    assert [entry["device"] for entry in found] == [device(0), device(1)]
    for entry in found:
        (ready,) = entry["conditions"]
        assert (ready["status"], ready["reason"]) == ("False", "UnknownDevice")
        assert ready["message"] == "no such card (delete the pod)"
        assert entry["data"] == {"onRefusal": "Evict"}
    claim["status"]["devices"] = found
    told = device_status.wants_eviction(claim, DRIVER)
    assert told is not None
    assert (told.code, told.is_final, told.since) == ("UnknownDevice", True, NOW)


def test_a_refusal_that_may_pass_is_nobodys_reason_to_evict() -> None:
    claim = claim_object("a", result())
    busy = DeviceBusyError("claim team-b/x (u9) is still prepared on the same GPU")
    claim["status"]["devices"] = entries(claim, refused(busy, device_status.EVICT))
    (told,) = device_status.refusals(claim, DRIVER)
    assert "team-b/x (u9)" in told.message
    assert not told.is_final
    assert device_status.wants_eviction(claim, DRIVER) is None


def test_a_limit_that_cannot_be_kept_is_not_enforced_either() -> None:
    error = TierUnavailableError("tier: found hami, allowed on this node: none")
    (entry,) = entries(claim_object("a", share()), refused(error))
    assert conditions(entry) == {
        "Ready": ("False", "EnforcementUnavailable"),
        "Enforced": ("False", "EnforcementUnavailable"),
    }


def test_success_after_a_refusal_leaves_nothing_of_it() -> None:
    claim = claim_object("a", result())
    claim["status"]["devices"] = entries(claim, refused(UnknownDeviceError("gone")))
    claim["status"]["devices"] = entries(claim, prepared(held()))
    assert device_status.refusals(claim, DRIVER) == ()
    assert "onRefusal" not in claim["status"]["devices"][0]["data"]


def test_entries_of_other_drivers_stay_where_and_as_they_are() -> None:
    other = {"driver": "nic.example.com", "pool": "p", "device": "eth0", "data": {"ip": [1]}}
    claim = claim_object(
        "a", result(), result(0, driver="nic.example.com", pool="p", device="eth0")
    )
    claim["status"]["devices"] = [other]
    found = entries(claim, prepared(held()))
    assert found[0] == other
    assert [entry["driver"] for entry in found] == ["nic.example.com", DRIVER]
    claim["status"]["devices"] = found
    assert after(claim, Released()) == [other]
    claim["status"]["devices"] = [other]
    assert after(claim, Released()) is None


def test_two_requests_with_the_same_device_make_one_entry() -> None:
    claim = claim_object("a", result(), result(request="look", adminAccess=True))
    both = prepared(held(), held(request="look", admin_access=True))
    assert len(entries(claim, both)) == 1


@pytest.mark.parametrize("status", [{}, {"allocation": {"devices": {"results": []}}}])
def test_a_claim_that_was_deallocated_meanwhile_gets_nothing(status: dict[str, Any]) -> None:
    claim = claim_object("a", result()) | {"status": status}
    assert after(claim, prepared(held())) is None
    assert after(claim, refused(UnknownDeviceError("gone"))) is None


def test_devices_that_were_allocated_since_wait_for_their_own_prepare() -> None:
    claim = claim_object("a", result(1))
    assert after(claim, prepared(held(0))) is None


def test_marks_stand_on_the_devices_of_their_card_beside_the_rest() -> None:
    claim = claim_object("a", result(0), result(1))
    mark = Mark("MemoryPressure", True, "Above90Percent", "nearly full", PciAddress(0, 0x11, 0))
    first, second = entries(claim, prepared(held(0), held(1)), mark)
    assert "MemoryPressure" not in conditions(first)
    assert conditions(second)["MemoryPressure"] == ("True", "Above90Percent")
    everywhere = replace(mark, card=None)
    for entry in entries(claim, prepared(held(0), held(1)), everywhere):
        assert "MemoryPressure" in conditions(entry)


def test_a_mark_stands_in_place_of_the_condition_of_its_type() -> None:
    claim = claim_object("a", result(0), result(1))
    mark = Mark("Enforced", False, "ProcessNotLimited", "not loaded", PciAddress(0, 0x11, 0))
    first, second = entries(claim, prepared(held(0), held(1)), mark)
    assert conditions(first)["Enforced"] == ("True", "WholeGpu")
    assert conditions(second)["Enforced"] == ("False", "ProcessNotLimited")
    assert [one["type"] for one in second["conditions"]] == ["Ready", "Enforced"]


def test_a_refusal_is_news_until_the_status_says_so() -> None:
    claim = claim_object("a", result())
    gone, busy = refused(UnknownDeviceError("gone")), refused(DeviceBusyError("held"))
    assert is_news(claim, DRIVER, gone)
    claim["status"]["devices"] = entries(claim, gone)
    assert not is_news(claim, DRIVER, refused(UnknownDeviceError("gone, in other words")))
    assert is_news(claim, DRIVER, busy)


@pytest.mark.parametrize("error", [ApiUnavailableError("away"), ClaimGoneError("gone")])
def test_where_there_is_no_claim_to_write_to_nothing_is_told(error: DragoonError) -> None:
    assert Refused.by(error) is None


def test_a_message_that_is_too_long_keeps_its_hint() -> None:
    found = refused(UnknownDeviceError("x" * 5000, hint="do this"))
    assert len(found.message) == 1024
    assert found.message.endswith("... (do this)")
