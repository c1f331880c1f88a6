"""What is remembered of cards while they are lost or away, and after a restart."""

from dataclasses import replace
from typing import Any

from dragoon.gpu.model import Inventory, LostGpu
from dragoon.publish.last_seen import LastSeen
from dragoon.publish.slices import render
from tests.unit.publish.nodes import DRIVER, NODE, address, built, gpu, inventory

FIRST, SECOND = "gpu-0000-10-00-0", "gpu-0000-11-00-0"
BOTH = inventory()


def shown(found: Inventory = BOTH) -> LastSeen:
    """After this was published."""
    seen = LastSeen()
    seen.take_over(found, built(found), {})
    return seen


def device(**changes: Any) -> dict[str, Any]:
    return {"name": "d", "attributes": {}, **changes}


def recalled(*devices: dict[str, Any], driver: str = DRIVER) -> LastSeen:
    seen = LastSeen()
    seen.recall(
        [{"spec": {"driver": driver, "devices": list(devices)}}, {"spec": {"driver": "b"}}], DRIVER
    )
    return seen


def test_what_an_earlier_process_published_is_what_this_one_would_have_said() -> None:
    seen = LastSeen()
    seen.recall(render(BOTH, node=NODE, driver=DRIVER), DRIVER)
    assert seen.devices == shown().devices
    assert set(seen.devices) == {FIRST, SECOND}


def test_what_other_drivers_publish_is_not_ours() -> None:
    assert recalled(device(), driver="gpu.nvidia.com").devices == {}
    assert set(recalled(device()).devices) == {"d"}


def test_a_card_that_is_away_stays_and_one_that_is_here_says_it_anew() -> None:
    seen = shown()
    changed = replace(gpu(0), product="Other")
    found = inventory(changed)
    seen.take_over(found, built(found), {})
    assert set(seen.devices) == {FIRST, SECOND}
    assert seen.devices[FIRST] == shown(found).devices[FIRST]
    assert seen.devices[SECOND] == shown().devices[SECOND]


def test_the_domain_of_a_card_that_is_away_is_kept() -> None:
    seen = shown()
    seen.take_over(BOTH, built(BOTH), {address(0): "a", address(1): "a"})
    seen.take_over(BOTH, built(BOTH), {address(0): "b"})
    assert seen.domains == {address(0): "b", address(1): "a"}


def test_only_devices_of_cards_that_work_are_of_working_cards() -> None:
    lost = inventory(gpu(0), lost=(LostGpu(address(1), "no answer"),))
    assert shown().of_working(BOTH) == {FIRST, SECOND}
    assert shown().of_working(lost) == {FIRST}


def test_mig_devices_and_shares_are_told_from_whole_cards() -> None:
    whole, mig = recalled(device()), recalled(device(attributes={"profile": {"string": "1g.10gb"}}))
    share = recalled(device(allowMultipleAllocations=True))
    assert [seen.divided for seen in (whole, mig, share)] == [False, True, False]
    assert [seen.shared for seen in (whole, mig, share)] == [False, False, True]
