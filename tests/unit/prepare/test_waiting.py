"""Budgets, pauses, signals and turns."""

import asyncio

from dragoon.prepare.clock import LoopClock, ManualClock, Stopwatch
from dragoon.prepare.locks import Turns
from dragoon.prepare.waiting import Backoff, Budget, Changes
from tests.unit.prepare.scene import until


def test_a_budget_runs_out_and_can_be_extended_to_anothers_end() -> None:
    clock = ManualClock()
    budget = Budget(clock, 40)
    clock.time = 30
    assert budget.left == 10
    clock.time = 50
    assert budget.left == 0
    budget.last_as_long_as(Budget(clock, 40))
    assert budget.left == 40
    budget.last_as_long_as(Budget(clock, 10))
    assert budget.left == 40


def test_pauses_grow_up_to_a_limit() -> None:
    backoff = Backoff()
    pauses = [backoff.next() for _ in range(8)]
    assert pauses == sorted(pauses)
    assert pauses[0] == 0.1
    assert pauses[-1] == 2.0


async def test_a_change_between_looking_and_waiting_is_not_missed() -> None:
    changes = Changes(ManualClock())
    seen = changes.count
    changes.announce()
    assert await changes.beyond(seen, 1000)


async def test_every_waiter_is_woken_by_a_change() -> None:
    clock = ManualClock()
    changes = Changes(clock)
    waiters = [asyncio.create_task(changes.beyond(0, 1000)) for _ in range(3)]
    await until(lambda: clock.sleeping == 3)
    changes.announce()
    assert await asyncio.gather(*waiters) == [True] * 3


async def test_waiting_ends_with_its_time() -> None:
    clock = ManualClock()
    changes = Changes(clock)
    waiter = asyncio.create_task(changes.beyond(0, 5))
    await until(lambda: clock.sleeping == 1)
    clock.advance(4)
    assert clock.sleeping == 1
    clock.advance(1)
    assert not await waiter


async def test_turns_come_in_order_of_arrival_and_leave_nothing_behind() -> None:
    turns = Turns()
    order: list[int] = []
    gate = asyncio.Event()

    async def take(number: int) -> None:
        end = await turns.take("a")
        try:
            await gate.wait()
            order.append(number)
        finally:
            end()

    tasks = [asyncio.create_task(take(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    end_other = await turns.take("b")
    assert len(turns) == 2
    end_other()
    gate.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 2, 3]
    assert len(turns) == 0


def test_a_stopwatch_adds_up_parts() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    for seconds in (1, 2):
        with watch.span("api"):
            clock.time += seconds
    clock.time += 4
    assert watch.spans == {"api": 3}
    assert watch.seconds == 7


async def test_the_real_clock_goes_forward() -> None:
    clock = LoopClock()
    begun = clock.now()
    await clock.sleep(0)
    assert clock.now() >= begun
