"""When a waiter is woken."""

import asyncio

import pytest

from dragoon.publish.pacing import Due


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
