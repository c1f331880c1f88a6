import asyncio

import pytest

from dragoon.gang.turns import Turns


async def enter(turns: Turns, name: str, order: list[str], priority: int, created: str) -> None:
    async with turns.turn(priority, created):
        order.append(name)
        await asyncio.sleep(0)


async def test_the_more_important_comes_first_then_the_older() -> None:
    turns, order = Turns(), list[str]()
    async with turns.turn(0, "0"):
        waiting = [
            asyncio.ensure_future(enter(turns, "young", order, 0, "2")),
            asyncio.ensure_future(enter(turns, "old", order, 0, "1")),
            asyncio.ensure_future(enter(turns, "important", order, 9, "3")),
        ]
        await asyncio.sleep(0)
        assert order == []
    await asyncio.gather(*waiting)
    assert order == ["important", "old", "young"]


async def test_one_at_a_time() -> None:
    turns = Turns()
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        async with turns.turn(0, ""):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(5)))
    assert most == 1


async def test_who_is_cancelled_while_waiting_keeps_nobody_out() -> None:
    turns, order = Turns(), list[str]()
    async with turns.turn(0, ""):
        gone = asyncio.ensure_future(enter(turns, "gone", order, 5, "1"))
        next_ = asyncio.ensure_future(enter(turns, "next", order, 0, "2"))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
    await next_
    assert order == ["next"]


async def test_who_is_cancelled_just_when_it_is_its_turn_passes_it_on() -> None:
    turns, order = Turns(), list[str]()
    async with turns.turn(0, ""):
        gone = asyncio.ensure_future(enter(turns, "gone", order, 5, "1"))
        next_ = asyncio.ensure_future(enter(turns, "next", order, 0, "2"))
        await asyncio.sleep(0)
    gone.cancel()  # It was given the turn, and has not run since.
    with pytest.raises(asyncio.CancelledError):
        await gone
    await asyncio.wait_for(next_, 60)
    assert order == ["next"]


async def test_a_turn_that_fails_is_over() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="no"):
        async with turns.turn(0, ""):
            raise ValueError("no")
    async with asyncio.timeout(60):
        async with turns.turn(0, ""):
            pass
