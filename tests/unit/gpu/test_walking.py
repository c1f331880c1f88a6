"""A question to every card: one that hangs costs only itself, and the driver's own locks nobody."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dragoon.app.patience import DRIVER_SECONDS
from dragoon.gpu.model import PciAddress
from dragoon.gpu.nvml.library import Library
from dragoon.gpu.nvml.walking import Patience, Standing, Wait, Walk, Walked, decide
from tests.unit.gpu.rig import eventually

CARDS = 4
SHORT, LONG = Patience(card=0.2, grace=0.05), Patience(card=120, grace=120)


def at(index: int) -> PciAddress:
    return PciAddress(0, index, 0)


class Driver:
    """Cards that answer with their number; those in `shut` when they are let go.

    A card in `locks` that is asked while it is shut keeps everybody else from answering.
    """

    def __init__(self, patience: Patience) -> None:
        self.shut: set[int] = set()
        self.locks: set[int] = set()
        self.asked: Counter[int] = Counter()
        self.inside: Counter[int] = Counter()
        self.most_inside = 0
        self.changed = threading.Condition()
        self.library = Library(stand_in=object())
        self.walk = Walk(self.library, self.ask, at, patience)

    def ask(self, index: int) -> int:
        with self.changed:
            self.asked[index] += 1
            self.inside[index] += 1
            self.most_inside = max(self.most_inside, self.inside[index])
            self.changed.notify_all()
            self.changed.wait_for(lambda: not self.shut & {index, *self._holders()})
            self.inside[index] -= 1
            return index

    def _holders(self) -> set[int]:
        return {index for index in self.locks if self.inside[index]}

    def let_go(self) -> None:
        with self.changed:
            self.shut.clear()
            self.changed.notify_all()

    def look(self) -> Walked[int]:
        with self.library.held():
            return self.walk(CARDS)

    def answer_all(self) -> None:
        eventually(lambda: not self.look().silent)

    def wait_until_asked(self, *cards: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: all(self.inside[card] for card in cards), 120)


@pytest.fixture
def driver() -> Iterator[Driver]:
    made = Driver(SHORT)
    yield made
    made.let_go()


@contextmanager
def looking(driver: Driver) -> Iterator[tuple[threading.Thread, list[Walked[int]]]]:
    """A look on a thread of its own, which ends when everything is let go."""
    found: list[Walked[int]] = []
    thread = threading.Thread(target=lambda: found.append(driver.look()))
    thread.start()
    try:
        yield thread, found
    finally:
        driver.let_go()
        thread.join()


def test_answers_come_in_the_order_of_the_cards() -> None:
    driver = Driver(LONG)
    assert driver.look() == Walked((0, 1, 2, 3), ())
    assert set(driver.asked.values()) == {1}


@pytest.mark.parametrize("card", range(CARDS))
def test_a_card_that_hangs_costs_only_itself(driver: Driver, card: int) -> None:
    driver.answer_all()
    driver.shut = {card}
    others = tuple(index for index in range(CARDS) if index != card)
    eventually(lambda: driver.look() == Walked(others, (at(card),)))


def test_a_card_that_never_answered_has_no_place(driver: Driver) -> None:
    driver.shut = {0}
    eventually(lambda: driver.look() == Walked((1, 2, 3), (None,)))


def test_a_card_is_not_asked_again_before_it_has_answered(driver: Driver) -> None:
    driver.shut = {0, 2}
    eventually(lambda: driver.look().answers == (1, 3))
    before = driver.asked[1]

    def was_asked_often() -> bool:
        driver.look()
        return driver.asked[1] >= before + 5

    eventually(was_asked_often)
    assert driver.most_inside == 1
    assert (driver.asked[0], driver.asked[2]) == (1, 1)


def test_a_card_that_answers_again_is_back(driver: Driver) -> None:
    driver.shut = {1}
    eventually(lambda: driver.look().answers == (0, 2, 3))
    driver.let_go()
    eventually(lambda: driver.look() == Walked((0, 1, 2, 3), ()))


def test_a_card_that_holds_a_lock_of_the_driver_makes_no_other_one_silent() -> None:
    driver = Driver(Patience(card=0.2, grace=120))  # all come back
    driver.answer_all()
    driver.locks, driver.shut = {1}, {1}
    with looking(driver) as (thread, found):
        driver.wait_until_asked(0, 1, 2, 3)
        assert thread.is_alive()
        assert not found
    assert found == [Walked((0, 1, 2, 3), ())]


def test_cards_that_are_lost_do_not_prove_that_the_driver_works() -> None:
    lost, hangs = Standing(hangs=False, well=False, stalls=0), Standing(True, well=False, stalls=0)
    assert isinstance(decide(range(3), {0: lost, 1: lost, 2: hangs}, 1), Wait)


def test_while_a_call_hangs_nobody_shuts_the_library(driver: Driver) -> None:
    driver.shut = {2}
    eventually(lambda: driver.look().answers == (0, 1, 3))
    with driver.library.held():
        assert not driver.library.shut_when_alone()
    driver.let_go()

    def can_shut() -> bool:
        with driver.library.held():
            return driver.library.shut_when_alone()

    eventually(can_shut)


def test_what_a_question_raises_is_raised_by_the_walk(driver: Driver) -> None:
    def fail(index: int) -> int:
        raise RuntimeError(f"a bug at {index}")

    walk: Walk[int] = Walk(driver.library, fail, at, SHORT)
    with driver.library.held(), pytest.raises(RuntimeError, match="a bug at 0"):
        walk(1)


def test_a_card_that_hangs_is_known_before_others_give_up_the_driver() -> None:
    patience = Patience()
    assert patience.card + patience.grace < DRIVER_SECONDS
