"""Whose MIG instances are on a card, and cards that cannot be asked."""

import threading
from dataclasses import replace

from dragoon.gpu.mig import MigCard
from dragoon.gpu.mig_memory import MemoryCard, MemoryMigCards
from dragoon.gpu.model import Inventory, PciAddress, Placement
from dragoon.publish.surveying import Surveyor, survey
from tests.unit.publish.divided import ON, divisible, division
from tests.unit.publish.nodes import address, gpu

H100 = division(mode=ON).card
FOUND = Inventory(gpus=(divisible(mode=ON), gpu(1)))
SECOND = address(1)
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


class OneHangs(MemoryMigCards):
    """The second card does not answer before it is let go."""

    def __init__(self, cards: dict[PciAddress, MemoryCard]) -> None:
        super().__init__(cards)
        self.go = threading.Event()

    def card(self, address: PciAddress) -> MigCard | None:
        if address == SECOND:
            assert self.go.wait(60)
        return super().card(address)


async def test_a_card_that_hangs_costs_only_itself_and_is_read_when_it_answers() -> None:
    other = replace(H100, address=address(1), uuid=gpu(1).uuid)
    two = OneHangs({address(0): MemoryCard(H100, 0), SECOND: MemoryCard(other, 1)})
    found = Inventory(gpus=(divisible(0, mode=ON), divisible(1, mode=ON)))
    surveyor = Surveyor(two, patience=0.05)
    for _ in range(2):
        surveyed = await surveyor.survey(found)
        while address(0) in surveyed.unread:  # a busy machine
            surveyed = await surveyor.survey(found)
        assert set(surveyed.cards) == {address(0)}
        assert "has not answered" in surveyed.unread[SECOND]
    two.go.set()
    while surveyed.unread:
        surveyed = await surveyor.survey(found)
    assert set(surveyed.cards) == {address(0), SECOND}


async def test_a_surveyor_finds_what_a_survey_finds() -> None:
    asked = cards()
    assert await Surveyor(asked).survey(FOUND) == survey(asked, FOUND)
