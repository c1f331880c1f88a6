"""When a waiter is woken."""

import asyncio

import pytest

from dragoon.publish.pacing import Budget, Due


@pytest.fixture
def due() -> Due:
    made = Due()
    made.open(True)
    return made


async def test_a_request_wakes_the_waiter_and_is_forgotten(due: Due) -> None:
    due.request()
    await due.wait()
    waiter = asyncio.create_task(due.wait())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiter.done()
    waiter.cancel()


async def test_the_earliest_of_several_requests_counts(due: Due) -> None:
    due.request(3600)
    due.request(0)
    due.request(3600)
    async with asyncio.timeout(60):
        await due.wait()


async def test_a_waiter_is_woken_by_an_earlier_request(due: Due) -> None:
    due.request(3600)
    waiter = asyncio.create_task(due.wait())
    await asyncio.sleep(0)
    assert not waiter.done()
    due.request(0)
    async with asyncio.timeout(60):
        await waiter


async def test_nobody_is_woken_while_closed_and_the_request_is_kept(due: Due) -> None:
    due.open(False)
    due.request(0)
    waiter = asyncio.create_task(due.wait())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiter.done()
    due.open(True)
    async with asyncio.timeout(60):
        await waiter


def test_a_budget_gives_a_burst_and_then_a_turn_each_rest() -> None:
    budget, now, taken = Budget(3, 10.0), 100.0, []
    for _ in range(6):
        now += budget.wait(now)
        budget.take(now)
        taken.append(now)
    assert taken == [100.0, 100.0, 100.0, 110.0, 120.0, 130.0]


def test_turns_that_were_not_used_come_back_up_to_the_burst() -> None:
    budget = Budget(2, 10.0)
    for _ in range(2):
        budget.take(0.0)
    assert budget.wait(0.0) == 10.0
    assert budget.wait(10.0) == 0.0
    for _ in range(2):
        assert budget.wait(1000.0) == 0.0
        budget.take(1000.0)
    assert budget.wait(1000.0) == 10.0
