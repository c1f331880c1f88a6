"""How many look at gangs at one time."""

import asyncio

import pytest

from dragoon.gang.workers import Workers


async def is_free(workers: Workers) -> bool:
    waiting = asyncio.ensure_future(workers.free())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    found = waiting.done()
    waiting.cancel()
    return found


async def test_so_many_may_begin_and_another_one_when_one_has_ended() -> None:
    workers = Workers(2)
    workers.begin()
    assert await is_free(workers)
    workers.begin()
    assert not await is_free(workers)
    waiting = asyncio.ensure_future(workers.free())
    await asyncio.sleep(0)
    workers.end()
    await asyncio.wait_for(waiting, 60)


async def test_while_one_is_away_another_one_may_begin_and_both_go_on_afterwards() -> None:
    workers = Workers(1)
    workers.begin()
    with workers.away():
        assert await is_free(workers)
        workers.begin()
        assert not await is_free(workers)
    workers.end()
    assert not await is_free(workers)
    workers.end()
    assert await is_free(workers)


async def test_who_is_cut_off_while_away_is_counted_once() -> None:
    workers = Workers(1)
    workers.begin()
    with pytest.raises(asyncio.CancelledError), workers.away():
        raise asyncio.CancelledError
    assert not await is_free(workers)
    workers.end()
    assert await is_free(workers)
