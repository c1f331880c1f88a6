"""Walks over cards of which some hang, by themselves or for a lock that one of them holds."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from dragoon.gpu.nvml.walking import Ask, Done, Standing, Wait, decide

MOST = 8
Cards = st.sets(st.integers(0, MOST - 1))


@dataclass
class Driver:
    """Cards that answer, hang or are lost; who is asked after the one that locks hangs too."""

    count: int
    hung: set[int]
    lost: set[int]
    locking: set[int] = field(default_factory=set)
    locked: bool = False
    stalls: int = 0
    asked: dict[int, Standing] = field(default_factory=dict)
    asks: int = 0

    def walk(self) -> Done | Wait:
        """What a walk comes to."""
        while isinstance(step := decide(range(self.count), self.asked, self.stalls), Ask):
            self.ask(step.index)
            assert self.asks <= 3 * MOST
        return step

    def ask(self, index: int) -> None:
        assert index not in self.hanging, "asked again before it has answered"
        self.asks += 1
        self.locked = self.locked or index in self.locking
        hangs = self.locked or index in self.hung
        well = not hangs and index not in self.lost
        self.asked[index] = Standing(hangs, well, self.stalls)
        self.stalls += hangs

    def begin(self) -> None:
        """Another walk, in which only those that hang are known."""
        self.asked = {index: self.asked[index] for index in self.hanging}
        self.stalls = self.asks = 0

    @property
    def hanging(self) -> set[int]:
        return {index for index, one in self.asked.items() if one.hangs}

    def let_go(self) -> None:
        """All that hang answer, late."""
        self.hung, self.locking, self.locked = set(), set(), False
        for index in self.hanging:
            self.asked[index] = Standing(False, index not in self.lost, self.asked[index].stalls)


drivers = st.builds(Driver, st.integers(1, MOST), hung=Cards, lost=Cards)


@given(drivers)
def test_who_hangs_is_found_and_nobody_else_as_long_as_one_card_works(driver: Driver) -> None:
    cards = set(range(driver.count))
    for _ in range(2):
        end = driver.walk()
        assert driver.asked.keys() == cards
        assert driver.hanging == driver.hung & cards
        works = bool(cards - driver.hung - driver.lost)
        assert isinstance(end, Done) is (works or not driver.hanging)
        driver.begin()


@given(drivers, st.integers(0, MOST - 1))
def test_a_lock_of_the_driver_condemns_nobody(driver: Driver, holder: int) -> None:
    driver.locking = {holder % driver.count}
    assert isinstance(driver.walk(), Wait)
    driver.let_go()
    assert isinstance(driver.walk(), Done)
    assert not driver.hanging


@given(drivers, Cards)
def test_a_lock_that_is_taken_later_condemns_nobody_more(driver: Driver, back: set[int]) -> None:
    """Between two walks some come back, and something takes the lock."""
    if isinstance(driver.walk(), Wait):
        return
    driver.begin()
    driver.asked = {index: one for index, one in driver.asked.items() if index not in back}
    driver.locked = True
    assert isinstance(driver.walk(), Wait)
