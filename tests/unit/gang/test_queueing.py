import asyncio

import pytest

from dragoon.gang.queueing import Queue
from tests.reachable import reachable


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def empty(queue: Queue[str]) -> bool:
    """Whether nothing can be taken now."""
    taking = asyncio.ensure_future(queue.take())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if taking.done():
        return False
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    return True


async def test_keys_come_in_the_order_in_which_they_were_added_and_once() -> None:
    queue: Queue[str] = Queue(Clock())
    for key in ("b", "a", "b"):
        queue.add(key)
    assert [await queue.take(), await queue.take()] == ["b", "a"]
    assert await empty(queue)


async def test_a_key_added_while_it_is_looked_at_comes_again_afterwards() -> None:
    queue: Queue[str] = Queue(Clock())
    queue.add("a")
    assert await queue.take() == "a"
    queue.add("a")
    queue.add("a")
    assert await empty(queue)
    queue.done("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert await empty(queue)


async def test_a_key_comes_when_it_is_due_and_the_earlier_time_counts() -> None:
    clock = Clock()
    queue: Queue[str] = Queue(clock)
    queue.add_at("a", 10)
    queue.add_at("a", 5)
    queue.add_at("a", 7)
    clock.now = 4.9
    assert await empty(queue)
    clock.now = 5
    assert await queue.take() == "a"
    queue.done("a")
    clock.now = 20
    assert await empty(queue)


async def test_whoever_waits_is_woken_by_a_new_key() -> None:
    queue: Queue[str] = Queue(Clock())
    taking = asyncio.ensure_future(queue.take())
    await asyncio.sleep(0)
    queue.add("a")
    assert await taking == "a"


async def test_whoever_waits_is_woken_when_a_key_is_due() -> None:
    queue: Queue[str] = Queue(asyncio.get_running_loop().time)
    queue.add_at("a", asyncio.get_running_loop().time() + 0.01)
    assert await asyncio.wait_for(queue.take(), 60) == "a"


async def test_a_key_that_is_gone_does_not_come_when_it_was_due() -> None:
    clock = Clock()
    queue: Queue[str] = Queue(clock)
    queue.add_at("gone", 5)
    queue.add_at("here", 7)
    queue.forget("gone")
    clock.now = 8
    assert await queue.take() == "here"
    assert await empty(queue)


def test_many_keys_that_came_and_went_leave_next_to_nothing() -> None:
    queue: Queue[str] = Queue(Clock())
    queue.add_at("here", 1e9)
    for number in range(1000):
        queue.add_at(f"gone {number}", 1e6 + number)
        queue.forget(f"gone {number}")
    assert sum(isinstance(one, str) for one in reachable(vars(queue))) < 200
