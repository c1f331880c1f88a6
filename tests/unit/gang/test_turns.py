import asyncio

import pytest

from dragoon.gang.turns import Turns
from dragoon.gang.waiting.ranking import Rank
from dragoon.prepare.clock import ManualClock

ANYBODY = Rank(0, "", "team", "anybody")


async def enter(turns: Turns, name: str, order: list[str], priority: int, created: str) -> None:
    """name: with its namespace, or else of the team."""
    space, _, _ = name.rpartition("/")
    async with turns.turn(Rank(-priority, created, space or "team", name)):
        order.append(name)
        await asyncio.sleep(0)


async def two_waiting(turns: Turns, order: list[str]) -> tuple[asyncio.Task[None], ...]:
    """The first of them would be next."""
    gone = asyncio.create_task(enter(turns, "gone", order, 5, "1"))
    next_ = asyncio.create_task(enter(turns, "next", order, 0, "2"))
    await asyncio.sleep(0)
    return gone, next_


async def test_the_more_important_comes_first_then_the_older() -> None:
    turns, order = Turns(), list[str]()
    async with turns.turn(ANYBODY):
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
        async with turns.turn(ANYBODY):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(5)))
    assert most == 1


async def test_who_is_cancelled_while_waiting_keeps_nobody_out() -> None:
    turns, order = Turns(), list[str]()
    async with turns.turn(ANYBODY):
        gone, next_ = await two_waiting(turns, order)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
    await next_
    assert order == ["next"]


async def test_who_is_cancelled_just_when_it_is_its_turn_passes_it_on() -> None:
    turns, order = Turns(), list[str]()
    async with turns.turn(ANYBODY):
        gone, next_ = await two_waiting(turns, order)
    gone.cancel()  # It was given the turn, and has not run since.
    with pytest.raises(asyncio.CancelledError):
        await gone
    await asyncio.wait_for(next_, 60)
    assert order == ["next"]


async def test_a_turn_that_fails_is_over() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="no"):
        async with turns.turn(ANYBODY):
            raise ValueError("no")
    async with asyncio.timeout(60):
        async with turns.turn(ANYBODY):
            pass


async def test_who_is_cancelled_and_has_not_run_since_is_not_given_the_turn() -> None:
    turns, order = Turns(), list[str]()
    async with turns.turn(ANYBODY):
        gone, next_ = await two_waiting(turns, order)
        gone.cancel()
    await asyncio.wait_for(next_, 60)
    assert order == ["next"]
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_one_namespace_with_many_that_wait_keeps_no_other_waiting() -> None:
    turns, order = Turns(), list[str]()
    async with turns.turn(ANYBODY):
        waiting = [
            asyncio.ensure_future(enter(turns, f"many/{number}", order, 0, "1"))
            for number in range(500)
        ]
        await asyncio.sleep(0)
        waiting.append(asyncio.ensure_future(enter(turns, "one/young", order, 0, "2")))
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert order.index("one/young") <= 1


async def test_a_namespace_whose_plans_take_long_has_fewer_turns() -> None:
    clock, order = ManualClock(), list[str]()
    turns = Turns(clock.now)

    async def plan(space: str, seconds: float, number: int) -> None:
        async with turns.turn(Rank(0, str(number), space, f"{space}{number}")):
            order.append(space)
            clock.advance(seconds)

    async with turns.turn(ANYBODY):
        waiting = [
            asyncio.ensure_future(plan(space, seconds, number))
            for number in range(10)
            for space, seconds in (("costly", 4.0), ("cheap", 1.0))
        ]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert order[:10].count("cheap") == 8


async def test_older_ones_that_come_again_and_again_starve_nobody() -> None:
    """A gang that finds no room is back as soon as something becomes free."""
    turns, order = Turns(), list[str]()
    is_over = asyncio.Event()

    async def again(name: str) -> None:
        while not is_over.is_set():
            await enter(turns, name, order, 0, "1")

    old = [asyncio.ensure_future(again(f"old{number}")) for number in range(3)]
    await asyncio.sleep(0)
    await asyncio.wait_for(enter(turns, "young", order, 0, "2"), 60)
    is_over.set()
    await asyncio.gather(*old)
    assert all(order[: order.index("young")].count(f"old{number}") <= 2 for number in range(3))
