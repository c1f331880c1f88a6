"""Whose MIG instances are on a card, and cards that cannot be asked."""

from dataclasses import replace

from dragoon.gpu.mig_memory import MemoryCard, MemoryMigCards
from dragoon.gpu.model import Inventory, Placement
from dragoon.publish.surveying import survey
from tests.unit.publish.divided import ON, divisible, division
from tests.unit.publish.nodes import address, gpu

H100 = division(mode=ON).card
FOUND = Inventory(gpus=(divisible(mode=ON), gpu(1)))
MADE = "gpu-0000-10-00-0-mig-1g10gb-0"


def cards() -> MemoryMigCards:
    """One H100 with two instances beside a card without MIG."""
    made = MemoryMigCards.of([H100], plain=[address(1)])
    made.create(address(0), "1g.10gb", Placement(0, 1))
    made.create(address(0), "3g.40gb", Placement(4, 4))
    return made


def test_instances_that_the_plugin_did_not_make_are_foreign() -> None:
    divisions, unread = survey(cards(), FOUND).told_apart({MADE})
    assert [one.profile.name for one in divisions[address(0)].foreign] == ["3g.40gb"]
    assert (set(divisions), unread) == ({address(0)}, {})


def test_whose_instances_are_is_not_guessed() -> None:
    divisions, unread = survey(cards(), FOUND).told_apart(None)
    assert divisions == {}
    assert "whose its instances are" in unread[address(0)]
    empty = survey(MemoryMigCards.of([H100], plain=[address(1)]), FOUND)
    assert set(empty.told_apart(None)[0]) == {address(0)}


def test_a_card_that_fails_costs_only_itself() -> None:
    other = replace(H100, address=address(1), uuid=gpu(1).uuid)
    two = MemoryMigCards(
        {
            address(0): MemoryCard(H100, 0, is_lost=True),
            address(1): MemoryCard(other, 1),
        }
    )
    found = Inventory(gpus=(divisible(0, mode=ON), divisible(1, mode=ON)))
    divisions, unread = survey(two, found).told_apart(set())
    assert set(divisions) == {address(1)}
    assert set(unread) == {address(0)}
