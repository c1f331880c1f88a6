"""Time slices: for shares of the tier none, counted by card, and for whole GPUs that ask for one."""

from pathlib import Path
from typing import Any

import pytest

from dragoon.api.enforcement import Tier
from dragoon.api.opaque_config import API_VERSION, TimeSlice
from dragoon.errors import HardwareError
from dragoon.gpu.limits import MemoryLimit
from dragoon.gpu.limits_memory import MemoryCaps
from dragoon.gpu.model import PciAddress
from dragoon.prepare.cards import UNCHANGEABLE_CARDS, DriverCards
from dragoon.prepare.observing import Ignored
from tests.unit.prepare.scene import DRIVER, result
from tests.unit.prepare.scene import gpu as card
from tests.unit.prepare.sharing import cards, refused, share, sharing_scene

ADDRESS = PciAddress(0, 0x10, 0)


def whole(interval: str) -> dict[str, Any]:
    parameters = {"apiVersion": API_VERSION, "kind": "GpuConfig", "timeSlice": interval}
    return {"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": parameters}}


async def test_the_interval_of_a_card_with_shares_goes_with_the_last_of_them() -> None:
    scene = sharing_scene(Tier.NONE, interval=TimeSlice.SHORT)
    engine = await scene.started()
    claims = [
        await scene.claim("a", share(0, "4Gi")),
        await scene.claim("b", share(0, "4Gi", share_id="s-2"), share(1, request="x")),
    ]
    for claim in claims:
        await engine.prepare(claim)
    slices = scene.disk.cards.time_slices
    assert slices == {card(0).uuid: TimeSlice.SHORT, card(1).uuid: TimeSlice.SHORT}
    await engine.unprepare(claims[1])
    assert slices == {card(0).uuid: TimeSlice.SHORT}
    await engine.unprepare(claims[0])
    assert slices == {}


async def test_without_an_interval_nothing_is_set_and_nothing_is_needed_of_the_pod() -> None:
    scene = sharing_scene(Tier.NONE)
    engine = await scene.started()
    await engine.prepare(await scene.claim("by-hand", share(0, cores="25")))
    assert scene.disk.cards.time_slices == {}


async def test_another_interval_may_be_chosen_while_shares_of_the_old_one_live() -> None:
    scene = sharing_scene(Tier.NONE, interval=TimeSlice.SHORT)
    old = await scene.claim("old", share(0, "4Gi"))
    await (await scene.started()).prepare(old)
    scene.enforcement = sharing_scene(Tier.NONE, interval=TimeSlice.LONG).enforcement
    engine = await scene.started()
    new = await scene.claim("new", share(0, "4Gi", share_id="s-2"))
    await engine.prepare(new)
    assert scene.disk.cards.time_slices == {card(0).uuid: TimeSlice.LONG}
    await engine.unprepare(new)
    await engine.unprepare(old)
    assert scene.disk.cards.time_slices == {}


async def test_a_whole_gpu_gets_the_time_slice_that_its_claim_asks_for_until_it_ends() -> None:
    scene = sharing_scene()
    engine = await scene.started()
    claim = await scene.claim("one", result(0), result(1, request="b"), config=[whole("Long")])
    await engine.prepare(claim)
    assert scene.disk.cards.time_slices == {
        card(0).uuid: TimeSlice.LONG,
        card(1).uuid: TimeSlice.LONG,
    }
    await engine.unprepare(claim)
    assert scene.disk.cards.time_slices == {}
    assert scene.files == {}


@pytest.mark.parametrize("interval", ["Default", None])
async def test_the_default_is_not_set_at_all(interval: str | None) -> None:
    scene = sharing_scene()
    engine = await scene.started()
    config = whole(interval or "Default")
    if interval is None:
        del config["opaque"]["parameters"]["timeSlice"]
    await engine.prepare(await scene.claim("one", result(0), config=[config]))
    assert scene.disk.cards.time_slices == {}


async def test_admin_access_changes_nothing_on_a_card() -> None:
    scene = sharing_scene()
    engine = await scene.started()
    admin = result(0, adminAccess=True)
    await engine.prepare(await scene.claim("one", admin, config=[whole("Long")]))
    assert scene.disk.cards.time_slices == {}


async def test_c41_a_time_slice_on_a_card_that_has_none_is_refused_for_good() -> None:
    scene = sharing_scene()
    scene.gpus.found = cards(compute_capability=(6, 1), product="Tesla P4")
    engine = await scene.started()
    claim = await scene.claim("one", result(0), config=[whole("Long")])
    error = await refused(engine, claim)
    assert "timeSlice: found Long, but a Tesla P4" in str(error)
    assert scene.files == {}


async def test_a_config_for_another_driver_on_our_device_is_told() -> None:
    scene = sharing_scene()
    engine = await scene.started()
    foreign = {"opaque": {"driver": "gpu.nvidia.com", "parameters": {"kind": "GpuConfig"}}}
    await engine.prepare(await scene.claim("one", result(0), config=[foreign]))
    (told,) = scene.told(Ignored)
    assert "gpu.nvidia.com" in told.what
    assert told.claim.name == "one"


# the real cards


def test_time_slices_are_set_by_nvidia_smi_since_nvml_sets_none() -> None:
    ran: list[tuple[str, ...]] = []

    def run(arguments: Any, timeout: float) -> bytes:
        ran.append(tuple(arguments))
        return b""

    driver = DriverCards(smi=Path("/usr/bin/nvidia-smi"), run=run)
    for interval in TimeSlice:
        driver.set_time_slice("GPU-1", interval)
    assert [one[1:] for one in ran] == [
        ("compute-policy", "-i", "GPU-1", f"--set-timeslice={value}") for value in range(4)
    ]


def test_a_cap_is_set_hard_and_taken_away(tmp_path: Path) -> None:
    limits = MemoryCaps(frozenset({ADDRESS}))
    driver = DriverCards(limits)
    driver.set_memory_cap(ADDRESS, tmp_path, 5)
    assert limits.get(ADDRESS, tmp_path) == MemoryLimit(hard=5)
    assert driver.memory_cap(ADDRESS, tmp_path) == 5
    driver.set_memory_cap(ADDRESS, tmp_path, None)
    assert driver.memory_cap(ADDRESS, tmp_path) is None


def test_cards_without_caps_say_what_they_need(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match="r615"):
        UNCHANGEABLE_CARDS.set_memory_cap(ADDRESS, tmp_path, 5)
