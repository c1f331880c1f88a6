"""Looking again until the answer will do, by a clock that the test moves."""

import asyncio

import pytest

from dragoon.cli.waiting import PAUSE_SECONDS, until
from dragoon.errors import StateError
from dragoon.prepare.clock import ManualClock


class Looking:
    """Answers that come one after the other, the last one for ever."""

    def __init__(self, *answers: str, clock: ManualClock | None = None, takes: float = 0.0) -> None:
        self.answers = list(answers)
        self.clock = clock or ManualClock()
        self.takes = takes
        self.told: list[str] = []
        self.looks = 0

    async def look(self) -> str:
        self.looks += 1
        self.clock.advance(self.takes)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def until_good(self, seconds: float) -> str:
        """The answer; time passes whenever it is waited for."""
        asked = asyncio.ensure_future(
            until(self.look, lambda one: one == "good", seconds, self.clock, self.told.append)
        )
        while not asked.done():
            await asyncio.sleep(0)
            if self.clock.sleeping:
                self.clock.advance(0.5)
        return await asked


async def test_an_answer_that_will_do_is_taken_at_once() -> None:
    one = Looking("good")
    assert await one.until_good(60) == "good"
    assert (one.looks, one.clock.time, one.told) == (1, 0, [])


async def test_it_looks_again_after_a_pause_and_tells_what_is_wrong() -> None:
    one = Looking("bad", "worse", "good")
    assert await one.until_good(60) == "good"
    assert (one.clock.time, one.told) == (2 * PAUSE_SECONDS, ["bad", "worse"])


async def test_when_the_time_is_over_it_has_looked_a_last_time() -> None:
    one = Looking("bad")
    assert await one.until_good(5) == "bad"
    assert (one.looks, one.clock.time) == (4, 5)


async def test_without_time_it_looks_once() -> None:
    one = Looking("bad")
    assert await one.until_good(0) == "bad"
    assert (one.looks, one.told) == (1, [])


async def test_the_time_that_looking_takes_counts() -> None:
    one = Looking("bad", takes=10)
    assert await one.until_good(15) == "bad"
    assert one.looks == 2


async def test_an_error_ends_the_waiting() -> None:
    async def look() -> str:
        raise StateError("gone")

    with pytest.raises(StateError):
        await until(look, lambda _: False, 60, ManualClock(), lambda _: None)
