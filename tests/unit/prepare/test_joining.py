"""Several callers of one piece of work: one does it, the others get what comes of it."""

import asyncio

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.errors import DeviceBusyError
from dragoon.prepare.clock import ManualClock
from dragoon.prepare.joining import Calls
from dragoon.prepare.waiting import Budget
from tests.unit.prepare.scene import until

CLAIM = ClaimRef("team-a", "one", "0a")


class Work:
    """Work that ends when it is told to, and counts how often it was begun."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: Calls[int] = Calls()
        self.begun: list[Budget] = []
        self.go = asyncio.Event()
        self.clock = ManualClock()
        self.error = error

    async def do(self, budget: Budget) -> int:
        self.begun.append(budget)
        await self.go.wait()
        if self.error:
            raise self.error
        return len(self.begun)

    def call(self) -> asyncio.Task[int]:
        return asyncio.create_task(self.join(CLAIM))

    async def join(self, claim: ClaimRef) -> int:
        budget = Budget(self.clock, 40)
        return await self.calls.join(claim, budget, lambda: self.do(budget))

    async def callers(self, count: int) -> list[asyncio.Task[int]]:
        """As many callers, each in its place."""
        tasks = [self.call() for _ in range(count)]
        await until(lambda: bool(self.begun))
        await asyncio.sleep(0)
        return tasks


async def test_one_does_the_work_and_all_get_its_result() -> None:
    work = Work()
    tasks = await work.callers(3)
    work.go.set()
    assert await asyncio.gather(*tasks) == [1, 1, 1]
    assert len(work.calls) == 0


async def test_all_get_its_error() -> None:
    work = Work(DeviceBusyError("held"))
    tasks = await work.callers(3)
    work.go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert found == [work.error] * 3
    assert len(work.calls) == 0


async def test_work_whose_caller_has_gone_is_begun_anew_by_one_of_those_who_wait() -> None:
    work = Work()
    first, second, third = await work.callers(3)
    first.cancel()
    await until(lambda: len(work.begun) == 2)
    work.go.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await asyncio.gather(*[second, third]) == [2, 2]


async def test_work_without_callers_is_not_begun_anew() -> None:
    work = Work()
    tasks = await work.callers(2)
    for task in reversed(tasks):
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in found)
    assert (len(work.begun), len(work.calls)) == (1, 0)


async def test_a_caller_that_stops_waiting_costs_the_others_nothing() -> None:
    work = Work()
    first, second, third = await work.callers(3)
    second.cancel()
    work.go.set()
    assert await asyncio.gather(*[first, third]) == [1, 1]
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_a_later_caller_extends_the_time_of_the_work_and_keeps_its_own() -> None:
    work = Work()
    (first,) = await work.callers(1)
    work.clock.advance(30)
    second = work.call()
    await until(lambda: work.begun[0].left == 40)
    work.clock.advance(10)
    first.cancel()
    await until(lambda: len(work.begun) == 2)
    assert work.begun[1].left == 30
    work.go.set()
    assert await second == 2


async def test_other_claims_are_other_work() -> None:
    work = Work()
    await work.callers(1)
    task = asyncio.create_task(work.join(ClaimRef("team-a", "two", "0b")))
    await until(lambda: len(work.begun) == 2)
    assert len(work.calls) == 2
    work.go.set()
    assert await task == 2
