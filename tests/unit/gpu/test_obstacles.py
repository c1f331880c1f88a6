"""How long an obstacle stands, and which devices it blocks."""

from dataclasses import replace

import pytest

from dragoon.api.forms import Form
from dragoon.gpu.model import PciAddress
from dragoon.gpu.obstacles import UNLISTED_SECONDS, Obstacle, Scene, stands

CARD = PciAddress(0, 0x65, 0)
TO_MIG = Obstacle(CARD, frozenset({Form.MIG}), needs_mig=True, code="CardInUse")
TO_WHOLE = Obstacle(CARD, frozenset({Form.WHOLE, Form.SHARED}), needs_mig=False, code="CardInUse")
OFF = Scene(mig_enabled=False, has_instances=False)
ON = Scene(mig_enabled=True, has_instances=False)


def test_a_card_that_cannot_be_divided_now_is_blocked_in_that_form_alone() -> None:
    assert TO_MIG.blocks("gpu-0000-65-00-0-mig-3g40gb-4")
    assert not TO_MIG.blocks("gpu-0000-65-00-0")
    assert not TO_MIG.blocks("gpu-0000-65-00-0-shared")


def test_a_card_that_stays_divided_is_blocked_whole_and_shared() -> None:
    assert TO_WHOLE.blocks("gpu-0000-65-00-0")
    assert TO_WHOLE.blocks("gpu-0000-65-00-0-shared")
    assert not TO_WHOLE.blocks("gpu-0000-65-00-0-mig-1g10gb-0")


@pytest.mark.parametrize("name", ["gpu-0000-66-00-0-mig-3g40gb-4", "nic-0", ""])
def test_devices_of_other_cards_are_not_blocked(name: str) -> None:
    assert not TO_MIG.blocks(name)


def test_a_process_that_is_listed_is_in_the_way_as_long_as_it_is_there() -> None:
    obstacle = replace(TO_MIG, pids=frozenset({7, 8}))
    assert stands(obstacle, replace(OFF, pids=frozenset({8, 9})), age=1e6)
    assert not stands(obstacle, replace(OFF, pids=frozenset({9})), age=0)


def test_a_client_that_nobody_lists_is_believed_for_a_while() -> None:
    assert stands(TO_MIG, OFF, age=0)
    assert not stands(TO_MIG, OFF, age=UNLISTED_SECONDS)


def test_instances_are_in_the_way_of_the_whole_card_as_long_as_they_are_there() -> None:
    assert stands(TO_WHOLE, replace(ON, has_instances=True), age=1e6)
    assert not stands(TO_WHOLE, ON, age=UNLISTED_SECONDS)


def test_a_reset_is_required_until_the_mode_is_as_it_was_needed() -> None:
    obstacle = replace(TO_MIG, code="ResetRequired")
    assert stands(obstacle, OFF, age=1e6)
    assert not stands(obstacle, ON, age=0)


@pytest.mark.parametrize(("obstacle", "scene"), [(TO_MIG, ON), (TO_WHOLE, OFF)])
def test_with_the_mode_as_it_was_needed_nothing_is_in_the_way(
    obstacle: Obstacle, scene: Scene
) -> None:
    busy = replace(obstacle, pids=frozenset({7}))
    assert not stands(busy, replace(scene, pids=frozenset({7})), age=0)
